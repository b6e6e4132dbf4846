#!/usr/bin/python3
"""Writes gh_key_vectors.h: RSA keys of which a part begins with a zero byte (one key in 256 by chance, here on purpose), as PEM and as
the fixed-width base64 that the agent must find. An independent reading of what .NET's RSAParameters want."""
import base64
import math

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

WIDTH = {"d": 256, "dp": 128, "dq": 128, "exponent": 3, "inverseQ": 128, "modulus": 256, "p": 128, "q": 128}


def parts(p, q):
    lam = (p - 1) * (q - 1) // math.gcd(p - 1, q - 1)
    d = pow(65537, -1, lam)
    return {"d": d, "dp": d % (p - 1), "dq": d % (q - 1), "exponent": 65537, "inverseQ": pow(q, -1, p), "modulus": p * q, "p": p, "q": q}


def short(v, key):
    return v[key].bit_length() <= 8 * (WIDTH[key] - 1)


def primes(n):
    out = []
    while len(out) < n:
        k = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_numbers()
        out += [k.p, k.q]
    return out


def pem(v, form):
    public = rsa.RSAPublicNumbers(65537, v["modulus"])
    key = rsa.RSAPrivateNumbers(v["p"], v["q"], v["d"], v["dp"], v["dq"], v["inverseQ"], public).private_key()
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def quoted(text):
    return "\n\t ".join('"%s\\n"' % line for line in text.splitlines())


def main():
    found, pool = {}, primes(40)
    while len(found) < 4:
        # dp and dq hang on one prime each, so the pool grows until they are met; d and inverseQ hang on the pair
        recent = pool[-2:]
        for p, q in [(p, q) for p in recent for q in pool] + [(q, p) for p in recent for q in pool]:
            if p == q or (p * q).bit_length() != 2048:
                continue
            v = parts(p, q)
            for key in ("d", "dp", "dq", "inverseQ"):
                if key not in found and short(v, key):
                    found[key] = v
        pool += primes(2)
    out = ["/* Written by gh_key_vectors.py: throw-away keys, each with a part that begins with a zero byte. */",
           "/* clang-format off */", "#ifndef GH_KEY_VECTORS_H", "#define GH_KEY_VECTORS_H", "", "struct key_vector {",
           "\tconst char *zero; /* the part that begins with a zero byte */", "\tconst char *pkcs1, *pkcs8;",
           "\tconst char *parts[8]; /* d dp dq exponent inverseQ modulus p q */", "};", "",
           "static const struct key_vector key_vectors[] = {"]
    for key, v in sorted(found.items()):
        out.append("\t{\"%s\"," % key)
        out.append("\t %s," % quoted(pem(v, serialization.PrivateFormat.TraditionalOpenSSL)))
        out.append("\t %s," % quoted(pem(v, serialization.PrivateFormat.PKCS8)))
        texts = [base64.b64encode(v[k].to_bytes(WIDTH[k], "big")).decode() for k in WIDTH]
        out.append("\t {%s}}," % ",\n\t  ".join('"%s"' % t for t in texts))
    out += ["};", "", "#endif"]
    print("\n".join(out))


main()
