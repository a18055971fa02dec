"""Messages about a model that can't be loaded. test_config.py has the tests of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.settings.resolve import load_model


def test_a_fault_in_a_model_s_own_code_is_not_taken_for_a_wrong_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_faulty.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    k: dict = {}\n"
    )
    with pytest.raises(UserError) as error:
        load_model("my_faulty:Mine", "methods.mine")
    assert str(error.value).startswith(
        "methods.mine: 'my_faulty:Mine' can't be loaded (ValueError: mutable default"
    )
    assert str(error.value).endswith(f"; {tmp_path / 'my_faulty.py'}, line 3); fix it")
