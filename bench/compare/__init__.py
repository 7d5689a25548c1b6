# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/process: what is run (cases, inputs, work.*), under what (peers), how it is timed (measure), and
what is printed (report)."""
