"""The fleet checks read manifests with the same fixtures as the image checks."""

import importlib.util
import pathlib

_path = pathlib.Path(__file__).resolve().parents[1] / "image" / "conftest.py"
_spec = importlib.util.spec_from_file_location("image_fixtures", _path)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

inspect = _module.inspect
root = _module.root
