// The completion scripts of the shells. Each calls vehiclectl with the words up to the cursor, and offers the lines that it prints.

import ArgumentParser

enum CompletionScript {
  static func text(for shell: CompletionShell) -> String {
    switch shell {
    case .zsh: zsh
    case .fish: fish
    default: bash
    }
  }

  private static let bash = """
    # Completion of vehiclectl for bash.
    _vehiclectl() {
        local word rest
        COMPREPLY=()
        while IFS=$'\\t' read -r word rest; do
            if [[ $word = \(Completion.files) ]]; then
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$2")
            else
                COMPREPLY+=("$word")
            fi
        done < <("$1" \(Completion.request) "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    }
    complete -F _vehiclectl vehiclectl
    """

  private static let zsh = """
    #compdef vehiclectl
    # Completion of vehiclectl for zsh.
    _vehiclectl() {
        local line
        local -a found
        for line in "${(@f)$("${words[1]}" \(Completion.request) "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
            case "$line" in
            '') ;;
            \(Completion.files)) _files ;;
            *) found+=("${${line//:/\\\\:}/$'\\t'/:}") ;;
            esac
        done
        (( $#found )) && _describe -V vehiclectl found
    }
    if [[ "${funcstack[1]}" = _vehiclectl ]]; then
        _vehiclectl "$@"
    else
        compdef _vehiclectl vehiclectl
    fi
    """

  private static let fish = """
    # Completion of vehiclectl for fish.
    function __vehiclectl_complete
        set -l words (commandline -opc)
        set -l program $words[1]
        set -e words[1]
        set -l current (commandline -ct)
        for line in (command $program \(Completion.request) $words "$current" 2>/dev/null)
            if test "$line" = \(Completion.files)
                __fish_complete_path "$current"
            else
                printf '%s\\n' "$line"
            end
        end
    end
    complete -c vehiclectl -f -a '(__vehiclectl_complete)'
    """
}
