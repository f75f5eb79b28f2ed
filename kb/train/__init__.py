"""Everything that is fitted offline: the embedding, the weights. The product does not import it."""
