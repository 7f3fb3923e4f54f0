package com.amazonaws.mskdatagen;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Stands in under the real name: topics and fields from the genv keys, a record of texts for each topic now and then. */
public class GeneratorSourceConnector extends SourceConnector {
    private Map<String, String> settings;

    public void start(Map<String, String> given) { settings = given; }
    public Class<? extends Task> taskClass() { return Generator.class; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(settings); }
    public void stop() { }
    public ConfigDef config() { return new ConfigDef(); }
    public String version() { return "stub"; }

    public static class Generator extends SourceTask {
        private final Map<String, Set<String>> topics = new TreeMap<>();
        private long count;

        public void start(Map<String, String> settings) {
            for (String key : settings.keySet()) {
                String[] parts = key.split("\\.");
                if (parts.length >= 4 && parts[0].equals("genv")) {
                    topics.computeIfAbsent(parts[1], name -> new TreeSet<>()).add(parts[2]);
                }
            }
        }

        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(500);
            List<SourceRecord> made = new ArrayList<>();
            count++;
            topics.forEach((topic, fields) -> {
                SchemaBuilder builder = SchemaBuilder.struct().name("gen." + topic);
                fields.forEach(field -> builder.field(field, Schema.OPTIONAL_STRING_SCHEMA));
                Schema schema = builder.build();
                Struct value = new Struct(schema);
                fields.forEach(field -> value.put(field, field + "-" + count));
                made.add(new SourceRecord(Map.of("topic", topic), Map.of("count", count), topic, schema, value));
            });
            return made;
        }

        public void stop() { }
        public String version() { return "stub"; }
    }
}
