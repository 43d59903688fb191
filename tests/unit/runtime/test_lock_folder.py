"""A folder that is trained into belongs to one process; one that only looks does not take it."""

import fcntl
import os
import threading

import pytest

from edp_mx.errors import UserError
from edp_mx.runtime.files import lock_folder


def look(folder):
    """Hold a folder as a process does that asks whether it is in use; return the handle."""
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def test_a_look_at_a_folder_does_not_refuse_the_training_that_begins_then(tmp_path):
    looks = look(tmp_path)
    timer = threading.Timer(0.05, os.close, [looks])
    timer.start()
    handle = lock_folder(tmp_path)
    timer.join()
    with pytest.raises(UserError, match="is in use: another process trains into it"):
        lock_folder(tmp_path)
    os.close(handle)
    os.close(lock_folder(tmp_path))
