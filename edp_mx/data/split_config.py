"""The setting `data.split` where it is a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple, Union

from edp_mx.runtime.files import path_field
from edp_mx.runtime.settings import SettingError, Settings, setting

HELD_OUT = 0.05  # of a training part that comes without a validation part


@dataclass(frozen=True)
class SplitConfig(Settings):
    """The split of a corpus by shares, or with a file that is the whole test part.

    Args:
        train: share of the training part, such as 0.8; left out where `test` is a file.
        validation: share of the validation part; where `test` is a file, of the utterances that
            are not in it, unless these bring a validation part of their own.
        test: share of the test part; or a file or folder in any layout that holds it.
    """

    train: Optional[float] = setting(None, above=0, below=1)
    validation: float = setting(HELD_OUT, above=0, below=1)
    test: Union[float, str] = path_field(0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.test, str):
            if self.train is not None:
                raise SettingError("train", "must be left out, because test names a file")
            return
        shares = (self.train or 0.0, self.validation, self.test)
        if min(shares) <= 0 or abs(sum(shares) - 1.0) > 1e-9:
            raise SettingError(
                "test",
                "must name a file, or be a share above 0 that adds up to 1 with those of train "
                f"and validation, not {self.test}",
            )

    @property
    def file(self) -> Optional[str]:
        """The file that is the test part, if there is one."""
        return self.test if isinstance(self.test, str) else None

    @property
    def shares(self) -> Optional[Tuple[float, float, float]]:
        """The shares of training, validation and test part; None with a file."""
        if self.train is None or isinstance(self.test, str):
            return None
        return self.train, self.validation, self.test
