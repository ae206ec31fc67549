"""Documents laid into sequences of one length. Works on token ids, model-free."""

from collections.abc import Iterable, Iterator, Sequence


def packed(
    documents: Iterable[Sequence[int]], sequence_tokens: int
) -> Iterator[list[Sequence[int]]]:
    """The documents of each full sequence, in order; a rest that fills none is left out.

    The last document of a sequence is cut where the sequence ends, and the next sequence begins
    with the next document: no token lacks what stood before it. SlimWise, What, item 1 (the REAP
    mixture).
    """
    members: list[Sequence[int]] = []
    num_free = sequence_tokens
    for document in documents:
        if not document:
            continue
        members.append(document[:num_free])
        num_free -= len(members[-1])
        if num_free == 0:
            yield members
            members, num_free = [], sequence_tokens
