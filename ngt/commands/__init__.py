"""The commands of `ngt`, with one module per command.

In each module, `add(parser)` adds the command's options and `run(args)` runs the command. `ngt.cli`
imports only the module of the requested command.
"""
