import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** A record whose fields hold values of their own, and transforms -> what the real classes make of it, one JSON line each. */
public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    static Schema schema(JsonNode shape) {
        if (!shape.isObject()) {
            return shape.isTextual() ? SchemaBuilder.string().optional().build() : SchemaBuilder.int64().optional().build();
        }
        SchemaBuilder made = SchemaBuilder.struct().optional();
        if (shape.has("$name")) made = made.name(shape.get("$name").asText());
        Iterator<Map.Entry<String, JsonNode>> fields = shape.fields();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> each = fields.next();
            if (!each.getKey().equals("$name")) made.field(each.getKey(), schema(each.getValue()));
        }
        return made.build();
    }

    static Object value(JsonNode shape, Schema schema) {
        if (!shape.isObject()) return shape.isTextual() ? shape.asText() : (Object) shape.asLong();
        Struct made = new Struct(schema);
        for (Field each : schema.fields()) made.put(each, value(shape.get(each.name()), each.schema()));
        return made;
    }

    static void flatten(Object value, String path, ObjectNode into) {
        if (value instanceof Struct) {
            Struct struct = (Struct) value;
            for (Field each : struct.schema().fields()) {
                flatten(struct.get(each), path.isEmpty() ? each.name() : path + "\u0000" + each.name(), into);
            }
        } else if (value instanceof Date) {
            into.put(path, String.valueOf(((Date) value).getTime()));
        } else {
            into.put(path, value == null ? null : value.toString());
        }
    }

    @SuppressWarnings("unchecked")
    static boolean holds(JsonNode asked, SinkRecord record) throws Exception {
        Predicate<SinkRecord> predicate = (Predicate<SinkRecord>) Class.forName(asked.get("class").asText())
            .getDeclaredConstructor().newInstance();
        Map<String, String> config = new HashMap<>();
        asked.get("config").fields().forEachRemaining(pair -> config.put(pair.getKey(), pair.getValue().asText()));
        predicate.configure(config);
        return asked.get("negate").asBoolean() ^ predicate.test(record);
    }

    @SuppressWarnings("unchecked")
    static ObjectNode run(JsonNode asked) {
        ObjectNode told = JSON.createObjectNode();
        try {
            Schema keySchema = schema(asked.get("key")), valueSchema = schema(asked.get("value"));
            SinkRecord record = new SinkRecord(asked.get("topic").asText(), 3, keySchema, value(asked.get("key"), keySchema),
                valueSchema, value(asked.get("value"), valueSchema), 42L, 1700000000000L, TimestampType.CREATE_TIME);
            for (JsonNode each : asked.get("transforms")) {
                Transformation<SinkRecord> transform = (Transformation<SinkRecord>) Class.forName(each.get("class").asText())
                    .getDeclaredConstructor().newInstance();
                Map<String, String> config = new HashMap<>();
                each.get("config").fields().forEachRemaining(pair -> config.put(pair.getKey(), pair.getValue().asText()));
                if (each.has("predicate") && !holds(each.get("predicate"), record)) continue;
                transform.configure(config);
                record = transform.apply(record);
                if (record == null) {
                    told.put("dropped", true);
                    return told;
                }
            }
            told.put("topic", record.topic());
            flatten(record.value(), "", told.putObject("value"));
            flatten(record.key(), "", told.putObject("key"));
        } catch (Exception | LinkageError e) {
            told.removeAll();
            told.put("error", e.toString());
        }
        return told;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        String line;
        while ((line = in.readLine()) != null) out.println(JSON.writeValueAsString(run(JSON.readTree(line))));
    }
}
