"""Drives `leasehold local` with boto3: every operation it offers, its answers, its refusals.

Usage: boto3_drive.py ENDPOINT. Prints one line for each check; ends with 1 at the first that fails.
"""

import checks
import dynamodb_checks
import kinesis_checks

kinesis_checks.run()
dynamodb_checks.run()
print(f"{checks.passed} checks passed", flush=True)
