#!/usr/bin/env bash
# Runs shellcheck over every shell script of the project.
set -euo pipefail
cd "${KERNELMILL_SOURCE_DIR:?}"

scripts=()
while IFS= read -r -d '' file; do
  # The extension or the first line says what it is.
  case $file in
    *.sh | *.sbatch) scripts+=("$file") ;;
    *) if head -n 1 "$file" | grep -aqE '^#!.*[/ ](ba)?sh$'; then scripts+=("$file"); fi ;;
  esac
done < <(find .ci launch tests -type f -size -256k -print0)
echo "${#scripts[@]} scripts"
[ "${#scripts[@]}" -ge 15 ] # all of them were found
shellcheck --external-sources --source-path=SCRIPTDIR "${scripts[@]}"
