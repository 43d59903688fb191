"""`edp-mx` with a record of its own of each step that was about to be released, by attempt.

Run by faults.py in place of `python -m edp_mx`; the record says what the ledger must hold.
"""

import os
import sys
from pathlib import Path

from edp_mx.cli import main
from edp_mx.training.loop import TrainingLoop

_RECORD = Path(f"{os.environ['EDP_MX_FAULTS_RECORD']}.{os.environ.get('HOROVOD_RANK', '0')}")
_step = TrainingLoop._step


def _recorded(self, losses, rate, batches, epoch, step):  # type: ignore[no-untyped-def]
    with open(_RECORD, "a") as record:
        record.write(f"{epoch} {step}\n")
    return _step(self, losses, rate, batches, epoch, step)


if __name__ == "__main__":
    TrainingLoop._step = _recorded  # type: ignore[method-assign]
    sys.exit(main())
