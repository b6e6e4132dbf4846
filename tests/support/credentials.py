"""Every credential that a runner can be given, for tests: each sets up the world and returns what goes into the environment."""
import base64
import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEYS = {}


def app_key(name="good", bits=2048):
    """One RSA key a name and process."""
    if name not in KEYS:
        KEYS[name] = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return KEYS[name]


def private_pem(key, form="pkcs1"):
    kind = serialization.PrivateFormat.TraditionalOpenSSL if form == "pkcs1" else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def public_pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


RIGHTS = {"orgs": "admin:org", "repos": "repo", "enterprises": "manage_runners:enterprise"}
PAT = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def token(world, entity):
    return {"RUNNER_TOKEN": world.mint(entity)}


def pat(world, entity):
    world.pat(token=PAT, scopes=[RIGHTS[entity.split("/")[0]]])
    return {"RUNNER_TOKEN": None, "ACCESS_TOKEN": PAT}


def installations():
    """Six installations: with two on a page, the one that fits is on the third."""
    others = [{"id": 500 + n, "account": "other-%d" % n, "type": "Organization", "runners": "org"} for n in range(5)]
    return others + [{"id": 777, "account": "Acme", "type": "Organization", "runners": "org"}]


def app(world, entity, pem=None, **more):
    world.set(page_size=2)
    world.app(id=12345, client_id="Iv23liABCDEFGHIJKLMN", public_pem=public_pem(app_key()), installations=installations())
    env = {"RUNNER_TOKEN": None, "APP_ID": "12345", "APP_PRIVATE_KEY": pem or private_pem(app_key())}
    env.update(more)
    return env


def jit(world, entity, web="github.com", name="jit-1"):
    made = world.jit(entity=entity, name=name, web=web)
    return {"RUNNER_TOKEN": None, "RUNNER_URL": None, "RUNNER_NAME": None, "ACTIONS_RUNNER_INPUT_JITCONFIG": made["config"]}


def jit_generated(world, entity):
    return dict(pat(world, entity), RUNNER_JIT="yes")


def jit_files(config):
    return {name: base64.b64decode(text) for name, text in json.loads(base64.b64decode(config)).items()}
