/* Hadoop's configuration files, as Chukwa's chukwa-agent-conf.xml: a list of properties in a subset
 * of XML 1.0.
 *
 *     <?xml version="1.0"?>
 *     <?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
 *     <!-- a comment -->
 *     <configuration>
 *       <property>
 *         <name>chukwaAgent.tags</name>
 *         <value>cluster="demo"</value>
 *         <description>what people read</description>
 *         <final>true</final>
 *       </property>
 *     </configuration>
 *
 * A property has a name and a value; its description and `final` may be missing. Comments and
 * processing instructions may stand anywhere between tags and texts. References are those to the
 * five characters that XML names (&lt;) and to numbers (&#60; &#x3c;). All else is refused, by its
 * line: attributes, other elements, CDATA, a DOCTYPE, an encoding other than UTF-8. So no file has
 * another read, and no text is longer than it stands there.
 *
 * Different from Hadoop: blanks and ends of lines around a value are no part of it, a value may be
 * empty, and `${NAME}` stays as it is.
 *
 * Pure, any thread. */
#ifndef WIRE_HADOOP_CONF_H
#define WIRE_HADOOP_CONF_H

#include "base/mem.h"

enum {
	HADOOP_CONF_MAX_BYTES = 1 << 20,
	HADOOP_PROPERTIES_MAX = 4096,
	HADOOP_NAME_MAX_BYTES = 255,
	HADOOP_TEXT_MAX_BYTES = 64 << 10, /* of a value or a description */
};

struct hadoop_property {
	const struct hadoop_property *next;
	struct slice name, value; /* UTF-8, in the arena; a line ends with \n; no other control
				   * character but tabs */
	unsigned line;            /* of its tag */
	bool final;
};

struct hadoop_conf {
	const struct hadoop_property *first; /* in the order of the file */
	size_t count;
};

/* ERR_INVALID with a sentence that names the line; ERR_LIMIT: the arena is full. A name that stands
 * there twice is no fault. */
int hadoop_conf_parse(struct slice text, struct arena *arena, struct hadoop_conf *conf,
		      struct errbuf *e) MUST_CHECK;

/* The property that counts: the last one of that name, up to the first that is final. NULL: there
 * is none. */
const struct hadoop_property *hadoop_conf_find(const struct hadoop_conf *conf, struct slice name);

#endif
