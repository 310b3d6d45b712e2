"""``deeper_research``: as ``deep_research``, but over chains, wider and longer.

It begins with ``chain_exploration`` beside ``hybrid_search``, asks for four missing things a round and name instead of
two, and for five rounds instead of three. It costs several times as much, and finds what lies more than one passage
away from all that the question names.
"""

from __future__ import annotations

from workbench.tools.deep_research import Input, Output, in_a_thread
from workbench.tools.research import Reach
from workbench.tools.tool import FunctionTool

DEEPER = Reach(rounds=5, asks=4, chains=True)

TOOL = FunctionTool(
    name="deeper_research",
    description="Research over chains, wider and longer: for questions whose way has several steps.",
    input_schema=Input,
    output_schema=Output,
    function=in_a_thread("deeper_research", DEEPER),
    calibration="Logistic in what a passage newly covers, its place, and how much of the question the best five cover.",
)
