"""The search index: derived from the store, built aside, published by one rename.

Nothing is imported here: `kb.index.live` loads FAISS and tantivy, the values of `kb.index.base`
neither.
"""
