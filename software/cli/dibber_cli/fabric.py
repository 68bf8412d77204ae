"""The environment in which programs on libfabric use the provider of build/ofi."""

# SPDX-License-Identifier: BSD-2-Clause

import os

from dibber_cli import paths
from dibber_cli.errors import CommandError

PROVIDER = paths.BUILD / "ofi" / "libdibber-fi.so"


def environment(uris):
    """This process's environment with the provider on these cards, in their order.

    Open MPI's settings are there too: its messages by the MTL for libfabric, no other network.
    Raises CommandError when the provider is not built.
    """
    if not PROVIDER.exists():
        raise CommandError(f"{PROVIDER} is not built", "run 'make ofi'")
    return {
        **os.environ,
        "FI_PROVIDER_PATH": str(PROVIDER.parent),
        "FI_PROVIDER": "dibber",
        "FI_DIBBER_CARD": ",".join(uris),
        "FI_DIBBER_FIRMWARE": str(paths.FIRMWARE),
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_opal_common_ofi_provider_include": "dibber",
    }
