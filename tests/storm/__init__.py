"""kill -9 at drawn moments, then a new process: is anything lost, doubled, repeated or answered otherwise?

make storm                     300 kills over the film run, a conversation, `kb add`, `kb remove`, `gc`, `doctor`
python -m tests.storm --kills 300 --seed 7

scenarios.py   what is done while the kills come: questions with their reviews, a conversation, adding, keeping order
moments.py     when a process is killed, and how it finds that moment in itself
warm.py        what every process would load first, loaded once
process.py     what the processes do: begin or go on, answer, finish
ledger.py      what is stored, read from outside, and what must never change in it
trial.py       one scenario through its kills to its end, and the verdict
__main__.py    many trials at once, and the table
"""
