#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# debian.sh FOLDER: a hipcc for -Dhome_hip=FOLDER, of what Debian 12 has: clang 19, and HIP's headers
# and device libraries of ROCm 5.2. Those lack what newer targets and code objects need, which is a
# file with one constant for each.
set -e
bitcode=$1/bitcode
mkdir -p "$1/bin" "$bitcode"
for library in /usr/lib/*/amdgcn/bitcode/*.bc; do
    ln -sf "$library" "$bitcode/"
done

constant() { # FILE NAME VALUE
    [ -e "$bitcode/$1.bc" ] || clang-19 -target amdgcn-amd-amdhsa -nogpulib -x ir -emit-llvm -c - -o "$bitcode/$1.bc" <<END
target triple = "amdgcn-amd-amdhsa"
@$2 = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 $3, align 4
END
}
for target in 942:9402 1100:11000 1101:11001 1102:11002 1103:11003 1150:11500 1151:11501 1200:12000 1201:12001; do
    constant "oclc_isa_version_${target%:*}" __oclc_ISA_version "${target#*:}"
done
constant oclc_abi_version_600 __oclc_ABI_version 600

cat >"$1/bin/hipcc" <<END
#!/bin/sh
exec clang++-19 --rocm-path=/usr --rocm-device-lib-path='$(cd "$bitcode" && pwd)' "\$@"
END
chmod +x "$1/bin/hipcc"
