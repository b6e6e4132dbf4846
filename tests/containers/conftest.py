"""Makes the fixtures of ``boxes`` known to every test here."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from boxes import base_image, container, final_build, final_image, init_image  # noqa: E402,F401
