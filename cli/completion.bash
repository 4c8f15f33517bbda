# SPDX-License-Identifier: Apache-2.0
#
# bash completion of tilegemm. Commands, options and tilings are asked of the program itself.

_tilegemm()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words=
    local names='s/^  *\([-a-z]*\) .*/\1/p' rows='s/^\([a-z][a-z0-9_]*\)  .*/\1/p'
    COMPREPLY=()
    [ "$COMP_CWORD" -eq 1 ] && previous=help
    case $previous in
    help) words="--help --version help $("$program" --help | sed -n "$names")" ;;
    --backend) words='cpu cuda hip' ;;
    --type) words='f32 f64 f16 bf16 i8 u8' ;;
    --trans) words='NN NT TN TT' ;;
    --once) words="$("$program" tiles 2>/dev/null | sed -n "$rows")" ;;
    --tile)
        words=$("$program" tiles 2>/dev/null | sed -n "$rows")
        [ "$command" != bench ] || words+=" all"
        ;;
    *)
        case $current in
        -*) words=$("$program" "$command" --help 2>/dev/null | sed -n "$names") ;;
        *) compopt -o default ;;
        esac
        ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _tilegemm tilegemm
