#!/usr/bin/python3
"""Writes what a package holds: every file with its hashes, and every library with its version and
licences, as SPDX 2.3 in JSON.

    sbom.py FOLDER --version VERSION --out FILE        writes it
    sbom.py FOLDER --verify                            checks a folder against its own list

Libraries are Debian's: of those that lie in the package beside ours, and of those that are compiled
into our programs, dpkg says which package and version they are, and that package's copyright file
which licences it has. The same folder on the same system gives the same bytes."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

LIST = "share/doc/kernelmill/sbom.spdx.json"
# Debian's packages whose code is inside our programs: static libraries and headers.
COMPILED_IN = [
    "libfaiss-dev",
    "libseccomp-dev",
    "libcapnp-dev",
    "nlohmann-json3-dev",
    "libcli11-dev",
    "libexpected-dev",
    "libxxhash-dev",
    "libspdlog-dev",
    "libcaf-dev",
    "libsimdjson-dev",
]
# Code of others that lies in our tree, with its licence in its first lines: name, version, SPDX licence, purl.
IN_OUR_TREE = [("highlight.js", "9.18.5", "BSD-3-Clause", "pkg:npm/highlight.js@9.18.5")]
# What Debian's copyright files call licences, where SPDX has another name.
SPDX = {
    "expat": "MIT",
    "mit": "MIT",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "apache-2.0": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "boost-1.0": "BSL-1.0",
    "bsl-1.0": "BSL-1.0",
    "lgpl-2+": "LGPL-2.0-or-later",
    "lgpl-2.0+": "LGPL-2.0-or-later",
    "lgpl-2.1": "LGPL-2.1-only",
    "lgpl-2.1+": "LGPL-2.1-or-later",
    "lgpl-3+": "LGPL-3.0-or-later",
    "lgpl-3": "LGPL-3.0-only",
    "gpl-2": "GPL-2.0-only",
    "gpl-2+": "GPL-2.0-or-later",
    "gpl-3": "GPL-3.0-only",
    "gpl-3+": "GPL-3.0-or-later",
    "gpl-2.0": "GPL-2.0-only",
    "gpl-2.0+": "GPL-2.0-or-later",
    "zlib": "Zlib",
    "isc": "ISC",
    "curl": "curl",
    "cc0-1.0": "CC0-1.0",
    "cc0": "CC0-1.0",
    "openssl": "OpenSSL",
    "openldap": "OLDAP-2.8",
    "openldap-2.8": "OLDAP-2.8",
    "artistic": "Artistic-1.0",
    "mpl-2.0": "MPL-2.0",
    "psf-2": "PSF-2.0",
    "unlicense": "Unlicense",
    "beerware": "Beerware",
}


def run(*words):
    """What a command prints; empty when it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.stdout if done.returncode == 0 else ""


def owner_of(name):
    """Debian's package that has a library or program of this name; empty when there is none."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/bin"):
        path = pathlib.Path(folder, name)
        if path.exists():
            for spelled in (str(path.resolve()), str(path), str(path.resolve()).removeprefix("/usr")):
                if found := run("dpkg", "-S", spelled):
                    return found.split(":")[0].strip()
    found = sorted(x for x in run("dpkg", "-S", f"*/{name}").splitlines() if x.endswith("/" + name))
    return found[0].split(":")[0].strip() if found else ""


def version_of(package):
    """Its version, and that of the source it was built from."""
    text = run("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${source:Version}\n", package)
    return (text.split("\n")[0].split("\t") + ["", "", ""])[:3]


def licences_of(package):
    """SPDX names of what the package's copyright file names."""
    try:
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text(errors="replace")
    except OSError:
        return []
    found = set()
    for line in re.findall(r"^License:\s*(\S[^\n]*)$", text, re.MULTILINE):
        for word in re.split(r"\s+(?:and|or|with)\s+|[,/]|\s+\|\s+", line.strip().lower()):
            word = word.strip(" ()")
            if name := SPDX.get(word):
                found.add(name)
            elif re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", word):
                found.add("LicenseRef-" + word.replace("+", "-or-later"))
    return sorted(found)


def hash_of(path, kind):
    """In hexadecimal."""
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def spdx_id(kind, name):
    """An identifier of SPDX: letters, digits, dots and dashes, and unique for the name."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", name)
    suffix = "" if plain == name else "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"SPDXRef-{kind}-{plain}{suffix}"


def files_of(root):
    """Every file but the list itself, sorted; links are named by what they point at."""
    for path in sorted(root.rglob("*"), key=lambda x: x.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix()
        if name != LIST and path.is_file() and not path.is_symlink():
            yield name, path


def package_words(identity, name, version, licences, comment, purl):
    """SPDX's words on code of others."""
    return {
        "SPDXID": identity,
        "name": name,
        "versionInfo": version or "unknown",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licences or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "comment": comment,
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl},
        ],
    }


def library_package(package, how):
    """SPDX's words on one of Debian's packages."""
    version, source, source_version = version_of(package)
    purl = f"pkg:deb/debian/{package}@{version}?arch=amd64&distro=bookworm"
    comment = f"{how}; of the source {source} {source_version}"
    words = package_words(
        spdx_id("Debian", package), package, version, " AND ".join(licences_of(package)), comment, purl
    )
    return {**words, "supplier": "Organization: Debian"}


def document_of(root, version):
    """The whole list."""
    files, relations, packages = [], [], {}
    for name, path in files_of(root):
        identity = spdx_id("File", name)
        kind = "BINARY" if path.open("rb").read(4) == b"\x7fELF" else "OTHER"
        files.append(
            {
                "SPDXID": identity,
                "fileName": "./" + name,
                "fileTypes": [kind],
                "checksums": [
                    {"algorithm": "SHA1", "checksumValue": hash_of(path, "sha1")},
                    {"algorithm": "SHA256", "checksumValue": hash_of(path, "sha256")},
                ],
                "licenseConcluded": "NOASSERTION",
                "licenseInfoInFiles": ["NOASSERTION"],
                "copyrightText": "NOASSERTION",
            }
        )
        relations.append(("SPDXRef-Kernelmill", "CONTAINS", identity))
        if name.startswith(("lib/kernelmill/", "libexec/kernelmill/")) and not path.name.startswith("libkernelmill"):
            package = owner_of(path.name)
            if not package:
                raise SystemExit(f"sbom.py: no package of Debian has {path.name}")
            packages.setdefault(package, library_package(package, "a shared library beside our programs"))
            relations.append((identity, "GENERATED_FROM", packages[package]["SPDXID"]))
    for package in COMPILED_IN:
        if version_of(package)[0]:
            packages.setdefault(package, library_package(package, "compiled into our programs"))
            relations.append((packages[package]["SPDXID"], "STATIC_LINK", "SPDXRef-Kernelmill"))
    for name, its_version, licence, purl in IN_OUR_TREE:
        words = package_words(spdx_id("Tree", name), name, its_version, licence, "lies in our tree", purl)
        packages[name] = words
        relations.append((words["SPDXID"], "STATIC_LINK", "SPDXRef-Kernelmill"))
    hashes = sorted(x["checksums"][0]["checksumValue"] for x in files)
    code = hashlib.sha1("".join(hashes).encode()).hexdigest()
    made = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    own = {
        "SPDXID": "SPDXRef-Kernelmill",
        "name": "kernelmill",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {
            "packageVerificationCodeValue": code,
            "packageVerificationCodeExcludedFiles": ["./" + LIST],
        },
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": own_licence(root),
        "licenseInfoFromFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    }
    refs = sorted({x for p in packages.values() for x in re.findall(r"LicenseRef-[\w.-]+", p["licenseDeclared"])})
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"kernelmill-{version}",
        "documentNamespace": f"https://example.org/kernelmill/{version}/{code}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: kernelmill-sbom"]},
        "packages": [own] + [packages[x] for x in sorted(packages)],
        "files": files,
        "hasExtractedLicensingInfos": [
            {
                "licenseId": x,
                "extractedText": f"{x.removeprefix('LicenseRef-')}, as the package's "
                "/usr/share/doc/PACKAGE/copyright on Debian has it",
            }
            for x in refs
        ],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-Kernelmill",
            }
        ]
        + [{"spdxElementId": a, "relationshipType": b, "relatedSpdxElement": c} for a, b, c in relations],
    }


def own_licence(root):
    """Ours, by the first words of LICENSE."""
    try:
        text = (root / "share/doc/kernelmill/LICENSE").read_text(errors="replace")[:2000]
    except OSError:
        return "NOASSERTION"
    for words, name in (
        ("Apache License", "Apache-2.0"),
        ("MIT License", "MIT"),
        ("Redistribution and use in source", "BSD-3-Clause"),
    ):
        if words in text:
            return name
    return "NOASSERTION"


def verify(root):
    """What of a folder is not as its list says, in words."""
    document = json.loads((root / LIST).read_text())
    listed = {x["fileName"].removeprefix("./"): x["checksums"] for x in document["files"]}
    there = dict(files_of(root))
    wrong = [f"{x} is listed and not there" for x in sorted(listed.keys() - there.keys())]
    wrong += [f"{x} is there and not listed" for x in sorted(there.keys() - listed.keys())]
    for name in sorted(listed.keys() & there.keys()):
        for sum_ in listed[name]:
            if hash_of(there[name], sum_["algorithm"].lower()) != sum_["checksumValue"]:
                wrong.append(f"{name} has another {sum_['algorithm']}")
    return wrong


def main():
    """Writes, or verifies."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--version", default="0")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--verify", action="store_true")
    given = parser.parse_args()
    if given.verify:
        wrong = verify(given.folder)
        print("\n".join(wrong) or "all files are as the list says")
        return 1 if wrong else 0
    text = json.dumps(document_of(given.folder, given.version), indent=1) + "\n"
    if given.out is None:
        sys.stdout.write(text)
        return 0
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
