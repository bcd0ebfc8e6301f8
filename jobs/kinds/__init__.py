"""The kinds of jobs: what each one is, its parameters and its result. `registry` lists them.

A new kind needs a member of `JobKind`, and two modules of its name: one here with its declaration (`KIND`), and one in
`jobs.services` with its `run`. If a policy decides about the kind, it also needs a module in `service.scheduling` with
`propose`, and settings in `service.policies.settings`. A test and a guide complete it. Everything else follows from the
declaration: the requests and the OpenAPI document, the sets of kinds, the form of the dashboard and the help of the
command line.
"""
