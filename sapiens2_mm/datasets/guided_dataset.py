"""Say where missing data come from."""

from typing import Any


class GuidedDataset:
    """In front of a dataset's class: a missing file or folder is explained.

    Args:
        guide: where to get the data and how to lay them out; ends the error.
        kwargs: of the dataset.

    Raises:
        FileNotFoundError: if a file or folder is missing.
    """

    def __init__(self, *args: Any, guide: str | None = None, **kwargs: Any) -> None:
        self.guide = guide
        super().__init__(*args, **kwargs)

    def full_init(self) -> None:
        """Read the annotations."""
        try:
            super().full_init()
        except FileNotFoundError as err:
            if self.guide is None:
                raise
            raise FileNotFoundError(f'{err}. {self.guide}') from err
