"""Which tokens of a forward pass are the student's.

Legend: T tokens.
"""

from enum import Enum, auto

from torch import Tensor


class Reader(Enum):
    """Who reads the tokens of a forward pass."""

    TEACHER = auto()
    STUDENT = auto()
    BOTH = auto()


class Phases:
    """The choice that all two-valued modules of a model share; it holds until the next one.

    It must outlive the backward pass, in which checkpointed layers run again.
    """

    def __init__(self) -> None:
        self.reader = Reader.TEACHER
        self.is_student_T1: Tensor
        self.student_rows: Tensor

    def teacher(self) -> None:
        """All tokens are the teacher's: the model as it was."""
        self.reader = Reader.TEACHER

    def student(self) -> None:
        """All tokens are the student's."""
        self.reader = Reader.STUDENT

    def by_token(self, is_student: Tensor) -> None:
        """Each token, in the order in which the model flattens them, is the student's if true."""
        self.reader = Reader.BOTH
        self.is_student_T1 = is_student.reshape(-1, 1)
        self.student_rows = is_student.flatten().nonzero().squeeze(1)
