"""The test CA. ``make_ca(dir)`` and ``make_leaf(dir, names, ...)`` write PEM files; everything is EC P-256, so it takes milliseconds."""
import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOSTS = [
    "github.com", "www.github.com", "api.github.com", "api.www.github.com",
    "pipelinesghubeus12.actions.githubusercontent.com", "tokenghub.actions.githubusercontent.com",
    "broker.actions.githubusercontent.com", "run.actions.githubusercontent.com",
    "octo.ghe.com", "api.octo.ghe.com", "pipelines.octo.ghe.com", "tokens.octo.ghe.com", "broker.octo.ghe.com", "run.octo.ghe.com",
    "ghes.corp.test", "other.corp.test",
]


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(path, data, mode=0o644):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "wb") as f:
        f.write(data)


def _key_pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


class CA:
    def __init__(self, folder, common_name="init test CA"):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.utcnow()
        self.cert = (x509.CertificateBuilder().subject_name(_name(common_name)).issuer_name(_name(common_name))
                     .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                     .not_valid_before(now - datetime.timedelta(days=2)).not_valid_after(now + datetime.timedelta(days=30))
                     .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
                     .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
                     .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
                     .sign(self.key, hashes.SHA256()))
        self.path = os.path.join(folder, "ca.pem")
        _write(self.path, self.cert.public_bytes(serialization.Encoding.PEM))

    def leaf(self, stem, names=None, start=-1, days=10):
        """Writes STEM.pem (leaf) and STEM.key; ``start`` days from now, valid for ``days``. Returns both paths."""
        names = HOSTS if names is None else names
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.utcnow()
        san = []
        for n in names:
            try:
                san.append(x509.IPAddress(ipaddress.ip_address(n)))
            except ValueError:
                san.append(x509.DNSName(n))
        cert = (x509.CertificateBuilder().subject_name(_name(names[0])).issuer_name(self.cert.subject)
                .public_key(key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(now + datetime.timedelta(days=start)).not_valid_after(now + datetime.timedelta(days=start + days))
                .add_extension(x509.SubjectAlternativeName(san), critical=False)
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
                .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
                .sign(self.key, hashes.SHA256()))
        cert_path = os.path.join(self.folder, stem + ".pem")
        key_path = os.path.join(self.folder, stem + ".key")
        _write(cert_path, cert.public_bytes(serialization.Encoding.PEM))
        _write(key_path, _key_pem(key), 0o600)
        return cert_path, key_path
