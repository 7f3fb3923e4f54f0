package io.confluent.connect.s3;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Stands in under the real name: reads and writes nothing. stub.fail = connector | task{N} | put: where it fails. */
public class S3SinkConnector extends SinkConnector {
    private Map<String, String> settings;

    public void start(Map<String, String> given) {
        if ("connector".equals(given.get("stub.fail"))) throw new ConnectException("stub: the connector cannot start");
        settings = given;
    }

    public Class<? extends Task> taskClass() { return Writer.class; }

    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> made = new ArrayList<>();
        for (int at = 0; at < most; at++) {
            Map<String, String> own = new HashMap<>(settings);
            own.put("stub.task", "task" + at);
            made.add(own);
        }
        return made;
    }

    public void stop() { }
    public ConfigDef config() { return new ConfigDef(); }
    public String version() { return "stub"; }

    public static class Writer extends SinkTask {
        private String fail = "";

        public void start(Map<String, String> settings) {
            fail = settings.getOrDefault("stub.fail", "");
            if (fail.equals(settings.get("stub.task"))) throw new ConnectException("stub: " + fail + " cannot start");
        }

        public void put(Collection<SinkRecord> records) {
            if (!records.isEmpty() && fail.equals("put")) throw new ConnectException("stub: a record cannot be written");
        }

        public void stop() { }
        public String version() { return "stub"; }
    }
}
