"""Cases that between them have each pair of values which some legal case has.

    for model, tp, stage in pairs.choose(itertools.product(MODELS, (1, 2, 4), range(4))):

A mistake takes a certain value, or two that meet; three that must meet are rare, and the
product of all grows with each new parameter. The choice is always the same. All cases run
where MESHWORK_ALL_CASES is set.
"""
import itertools
import os


def _pairs(case):
    values = [(place, repr(value)) for place, value in enumerate(case)]
    return set(itertools.combinations(values, 2)) or set(values)


def choose(cases):
    """Of `cases`, tuples of one length, the next is always the one with most new pairs."""
    cases = list(cases)
    if os.environ.get("MESHWORK_ALL_CASES"):
        return cases
    chosen, missing = [], set().union(*map(_pairs, cases))
    while missing:
        best = max(cases, key=lambda case: len(_pairs(case) & missing))
        chosen.append(best)
        missing -= _pairs(best)
    return chosen
