"""The site: Sphinx reads Markdown, runs the tutorials, and fails on every warning (`make docs`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
# The tutorials read the flights as the benchmarks do, and run on one BLAS thread as these.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from corebayes.version import __version__  # noqa: E402

project = "corebayes"
author = "The corebayes authors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
    "sphinx_design",
    "plain_docstrings",
    "mathml",
]
bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
# What a tutorial complains about would be in the reader's terminal too: it fails the build.
nb_output_stderr = "warn"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "exclude-members": "__init__, __new__"}
# In docstrings `name` is code.
default_role = "code"
# Names in two places are one object: `corebayes.build` and `corebayes.build.build`.
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "corebayes"
html_static_path = ["_static"]
html_css_files = ["corebayes.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
