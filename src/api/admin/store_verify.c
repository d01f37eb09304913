#include "api/admin/store_verify.h"

#include "board/verify.h"
#include "stream/verify.h"

int store_verify_tables(struct tables_verify *v)
{
	int err = stream_verify(v);
	return err ? err : board_verify(v);
}
