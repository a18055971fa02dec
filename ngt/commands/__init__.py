"""The commands of `ngt`, with one module per command.

`add(parser)` adds the options of a command and `run(args)` runs it. `ngt.cli` imports
only the module of the requested command.
"""
