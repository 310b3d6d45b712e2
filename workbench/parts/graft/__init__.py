"""Steps of several runs in one new run."""

from workbench.extensions import Part

PART = Part("graft", __name__, workbench={"graft": "graft:graft"})
