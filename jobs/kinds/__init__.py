"""The kinds of jobs: what each one is, its parameters and its result. `registry` lists them.

A new kind needs a member of `JobKind`, a module of its name here with its declaration (`KIND`), a module of its name in
`jobs.services` with its `run`, and, if a policy decides about it, one in `service.scheduling` with its `propose` and
settings in `service.policies.settings`; and also a test and a guide. Everything else follows from the declaration: the
requests and the OpenAPI document, the sets of kinds, the form of the dashboard and the help of the command line.
"""
