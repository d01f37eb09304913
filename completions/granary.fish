# fish: the program itself says how a line may go on.
function __granary_complete
	set -l words (commandline -opc)
	$words[1] complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c granary -n '__granary_complete | string length -q' -f -a '(__granary_complete)'
