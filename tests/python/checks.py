"""What the checks share: clients of the server under test, and ways to check."""

import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = sys.argv[1]
SETTINGS = {
    "endpoint_url": ENDPOINT,
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
    "config": Config(retries={"total_max_attempts": 1}, read_timeout=10, connect_timeout=5),
}
FAST = {"WaiterConfig": {"Delay": 1, "MaxAttempts": 20}}
TOP = 2**128 - 1

kinesis = boto3.client("kinesis", **SETTINGS)
dynamodb = boto3.client("dynamodb", **SETTINGS)
resource = boto3.resource("dynamodb", **SETTINGS)
passed = 0


def check(what, found, expected=True):
    """One check."""
    global passed
    if found != expected:
        print(f"FAILED {what}: expected {expected!r}, found {found!r}", flush=True)
        sys.exit(1)
    passed += 1
    print(f"ok {what}", flush=True)


def refused(what, code, call, **arguments):
    """A call that must be refused with this code; gives the answer's body."""
    try:
        found = call(**arguments)
    except ClientError as error:
        check(f"{what}: {code}", error.response["Error"]["Code"], code)
        return error.response
    check(f"{what}: {code}", f"success: {found}", code)


def eventually(what, ready):
    """Waits for a passing state to pass."""
    for _ in range(200):
        if ready():
            return check(what, True)
        time.sleep(0.15)
    check(what, False)
