# bash: the program itself says how a line may go on.
_granary() {
	local line=${COMP_LINE:0:COMP_POINT} begin= IFS=$'\n'
	local -a words
	IFS=$' \t' read -ra words <<<"$line"
	[[ $line == *[[:blank:]] ]] && words+=("")
	COMPREPLY=($("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null | cut -f 1))
	# What stands before the last = is no part of the word to bash.
	[[ $COMP_WORDBREAKS == *=* && ${words[-1]} == *=* ]] && begin=${words[-1]%%=*}=
	COMPREPLY=("${COMPREPLY[@]#"$begin"}")
}
complete -o default -F _granary granary
