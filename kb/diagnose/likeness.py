"""How alike an entry is: what the score of a similar case means, and what both have in common.

Text alone does not tell: of the cases whose words are nearest to a report two in five have its
cause, and hardly more of those with a score of .8 than of .5. So the score is the weighted
geometric mean of the text's likeness and of the probability of the entry's cause.

Measured on the first five cases of labelled threads, their own cases left out and the causes judged
by weights that never saw the project. Share of cases with the same cause and the same stage or
framework, of 230 threads, and with the same cause, of 263 that were drawn whatever their cause:

    score     < .3   .3    .4    .5    .6    .7
    230       .08    .29   .63   .64   .87   .89
    263       .13    .49   .61   .81   .79   .84
"""

from __future__ import annotations

from kb.knowledge.labels import Words
from kb.types.entries import Entry
from kb.types.incident import Incident

TEXT_SHARE = 0.7  # .5 to .8 part right from wrong as well; .7 shows most of the threads' own cases
ALIKE = 0.4  # from here on at least 60 % are alike in every band


def likeness(text: float, probability: float) -> float:
    """How alike an entry is, in [0, 1].

    Args:
        text: likeness of the texts (`kb.search.similarity`), in [0, 1].
        probability: of the entry's cause.
    """
    return float(text**TEXT_SHARE * probability ** (1 - TEXT_SHARE))


def compare(incident: Incident, entry: Entry, words: Words) -> tuple[list[str], list[str]]:
    """What an incident and an entry have in common, and what differs, in words."""
    tags, why, differs = entry.tags, list[str](), list[str]()
    hung = {incident.op, *(state.last_op for state in incident.ranks)}
    if shared := [op for op in tags.ops if op in hung]:
        why.append(words("why.same_op", op=words.listing(shared)))
    if "unknown" not in (incident.stage, tags.stage):
        stage = words(f"stage.{tags.stage}")
        if incident.stage == tags.stage:
            why.append(words("why.same_stage", stage=stage))
        else:
            differs.append(words("differs.stage", stage=stage))
    if incident.backend and tags.backend and incident.backend != tags.backend:
        differs.append(words("differs.backend", backend=tags.backend))
    for name, version in sorted(tags.versions.items()):
        if incident.versions.get(name, version) != version:
            differs.append(words("differs.version", name=name, version=version))
    if same := sorted(set(incident.frameworks) & set(tags.frameworks)):
        why.append(words("why.same_framework", frameworks=words.listing(same)))
    return why, differs
