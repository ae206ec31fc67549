from slimwise.core.packing import packed


def test_documents_fill_sequences_and_the_last_is_cut():
    documents = [[1] * 3, [2] * 4, [], [3] * 9, [4] * 2, [5] * 2]
    assert list(packed(documents, 5)) == [[[1] * 3, [2] * 2], [[3] * 5]]


def test_a_document_that_fits_exactly_ends_its_sequence():
    assert list(packed([[1, 1], [2, 2]], 2)) == [[[1, 1]], [[2, 2]]]
