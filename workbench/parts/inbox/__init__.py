"""Everything that waits for a person, over all runs: open, approve or stop it there."""

from workbench.extensions import Part

PART = Part("inbox", __name__, workbench={"inbox": "widget:inbox"})
