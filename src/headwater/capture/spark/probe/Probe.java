// Probe: Spark listener events -> compact JSON records in a queue. Compiled at run time by Spark's own Janino,
// so one source serves Spark 3.5 (Scala 2.12) and 4.x (Scala 2.13) without a jar. It understands nothing: it writes
// down the analyzed plan and whatever can name a dataset. Classes that differ between versions are met by reflection.
package headwater;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.HadoopRDD;
import org.apache.spark.rdd.NewHadoopRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.*;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

public class Probe extends SparkListener {
  private static final int FILES = 2000; // of a scan that is only known as an RDD
  private static final int PLAN = 1000000; // characters of a plan as JSON
  private static final int TEXT = 2000; // characters of an expression
  private final LinkedBlockingQueue queue = new LinkedBlockingQueue(); // bounded by letters, see offer
  private final AtomicLong held = new AtomicLong(); // letters in the queue
  private String given;                           // what was taken last, until its taker says that it came
  private long number = 0;                        // of that
  private long room = Math.min(64L << 20, Runtime.getRuntime().maxMemory() / 16);
  private final HashMap fields = new HashMap();   // class -> names of its constructor fields
  private final HashMap simple = new HashMap();   // class -> quoted simple name
  private final HashSet pending = new HashSet();  // executions whose plan was not there at START
  private final HashMap owner = new HashMap();    // stage -> execution id, or "job" + id
  private final HashSet jobs = new HashSet();     // running jobs that belong to no SQL execution
  private final HashMap written = new HashMap();  // execution id or "job" + id -> rows, bytes
  private final HashSet passing = new HashSet();  // nodes whose output follows from their children
  private final HashMap touched = new HashMap();  // execution -> paths of Delta tables in its plan
  private LinkedHashSet deltas;
  private final HashMap changes = new HashMap();  // execution -> tables that its statement names
  private long execution = -1;                    // the one at hand
  private SparkContext context;
  private boolean extended = false; // somebody asked for jobs, stages and RDDs
  private final HashMap stages = new HashMap();   // id -> Stage of running jobs, when extended
  private final HashMap members = new HashMap();  // job -> ids of its stages
  private final AtomicLong lost = new AtomicLong();
  private boolean texts = false;                  // asked for: expressions as SQL
  private boolean plans = false;                  // asked for: the optimized plan as JSON
  private String naming = "";                     // what names tables, as it was written down last
  private long nanos = 0; // time spent on the listener thread, for the overhead benchmark

  public Probe() {
    String[] names = new String[] {"Project", "Filter", "Aggregate", "Join", "Sort", "GlobalLimit", "LocalLimit", "SubqueryAlias", "View",
      "Union", "Window", "Distinct", "Generate", "Expand", "Repartition", "RepartitionByExpression", "Deduplicate", "WithCTE"};
    for (int i = 0; i < names.length; i++) passing.add("\"" + names[i] + "\"");
  }
  public void bind(SparkContext sc) { context = sc; }
  public void ask(boolean texts, boolean plans) { this.texts = texts; this.plans = plans; } // both cost: only on demand
  public void mark(long n) { offer("{\"kind\":\"mark\",\"id\":" + n + "}"); } // comes out behind all that was put in before
  public int size() { return queue.size(); }
  public void bound(long letters) { room = letters; }
  public void extend() { extended = true; }
  public long nanos() { return nanos; }

  /**
   * Waits for one record, then takes what else is there: a number, then one JSON text per line. Who asks tells the number
   * it got last; if that is not the last that was given, it was lost on the way, and is given again.
   */
  public synchronized String take(long millis, long got) throws InterruptedException {
    if (given != null && got != number) return given;
    given = null;
    String first = (String) queue.poll(millis, TimeUnit.MILLISECONDS);
    if (first == null) return null;
    StringBuilder out = new StringBuilder(first.length() + 16).append(++number).append("\n").append(first);
    int taken = first.length();
    while (out.length() < 1000000) {
      String next = (String) queue.poll();
      if (next == null) break;
      taken += next.length();
      out.append("\n").append(next);
    }
    held.addAndGet(-taken);
    long gone = lost.getAndSet(0);
    if (gone > 0) out.append("\n{\"kind\":\"lost\",\"count\":").append(gone).append("}");
    given = out.toString();
    return given;
  }

  // ------------------------------------------------------------------ events
  public void onOtherEvent(SparkListenerEvent event) {
    long begin = System.nanoTime();
    try {
      if (event instanceof SparkListenerSQLExecutionStart) started((SparkListenerSQLExecutionStart) event);
      else if (event instanceof SparkListenerSQLExecutionEnd) ended((SparkListenerSQLExecutionEnd) event);
      else if (event.getClass().getName().indexOf("StreamingQueryListener$Query") >= 0) streaming(event);
    } catch (Throwable t) { failed(t); } // the host never pays for lineage
    finally { nanos += System.nanoTime() - begin; }
  }

  private void failed(Throwable t) {
    StringBuilder at = new StringBuilder(String.valueOf(t));
    StackTraceElement[] st = t.getStackTrace();
    for (int i = 0; i < st.length && i < 6; i++) at.append(" | ").append(st[i].toString());
    offer("{\"kind\":\"probe_error\",\"error\":" + quote(at.toString()) + "}");
  }

  private void streaming(Object event) {
    String kind = event.getClass().getSimpleName(); // the classes moved between versions: met by name
    Object of = "QueryProgressEvent".equals(kind) ? call(event, "progress") : event;
    StringBuilder out = new StringBuilder(512).append("{\"kind\":");
    if ("QueryStartedEvent".equals(kind)) out.append("\"stream_start\"");
    else if ("QueryProgressEvent".equals(kind)) out.append("\"stream_progress\"");
    else if ("QueryTerminatedEvent".equals(kind)) out.append("\"stream_end\"");
    else return;
    out.append(",\"time\":").append(System.currentTimeMillis());
    out.append(",\"query\":").append(quote(String.valueOf(call(of, "id")))).append(",\"run\":").append(quote(String.valueOf(call(of, "runId"))));
    Object name = call(of, "name");
    if (name != null) out.append(",\"name\":").append(quote((String) name));
    if (of != event) out.append(",\"progress\":").append(clean(String.valueOf(call(of, "json"))));
    Object error = call(event, "exception");
    if (error instanceof scala.Option && ((scala.Option) error).isDefined()) out.append(",\"error\":").append(quote(clean((String) ((scala.Option) error).get())));
    offer(out.append("}").toString());
  }

  private void started(SparkListenerSQLExecutionStart s) {
    StringBuilder out = head("start", s.executionId(), s.time());
    scala.Option root = s.rootExecutionId();
    if (root.isDefined()) out.append(",\"root\":").append(root.get());
    out.append(",\"description\":").append(quote(clean(s.description())));
    QueryExecution qe = SQLExecution.getQueryExecution(s.executionId());
    execution = s.executionId();
    if (qe == null) pending.add(Long.valueOf(s.executionId()));
    else if (full()) out.append(",\"full\":1");
    else plan(out, qe);
    offer(out.append("}").toString());
  }

  private void ended(SparkListenerSQLExecutionEnd e) {
    StringBuilder out = head("end", e.executionId(), e.time());
    scala.Option error = e.errorMessage();
    boolean bad = error.isDefined() && ((String) error.get()).length() > 0;
    if (bad) out.append(",\"error\":").append(quote(clean((String) error.get())));
    QueryExecution qe = e.qe();
    execution = e.executionId();
    boolean late = pending.remove(Long.valueOf(e.executionId())) && qe != null;
    boolean full = full();
    if (late && full) out.append(",\"full\":1");
    else if (late) plan(out, qe);
    LinkedHashSet paths = (LinkedHashSet) touched.remove(Long.valueOf(e.executionId()));
    if (qe != null && !bad) versions(out, qe, paths);
    LinkedHashMap named = (LinkedHashMap) changes.remove(Long.valueOf(e.executionId()));
    if (named != null && qe != null && !bad) {
      current = qe;
      out.append(",\"after\":{\"v\":1");
      tables(out, named);
      out.append("}");
      current = null;
    }
    if (qe != null && !bad && !full) { // after an error the executed plan may never have been made
      out.append(",\"metrics\":[");
      try { metrics(out, qe.executedPlan(), new boolean[1]); } catch (Throwable t) { failed(t); }
      out.append("]");
    }
    counts(out, Long.valueOf(e.executionId()));
    if (plans && qe != null && !bad) { // made already: asking costs the writing alone
      try {
        String json = qe.optimizedPlan().toJSON();
        if (json.length() <= PLAN) out.append(",\"logicalPlan\":").append(quote(clean(json)));
      } catch (Throwable t) { /* a plan that cannot be written as JSON */ }
    }
    offer(out.append("}").toString());
  }

  public void onJobStart(SparkListenerJobStart e) {
    long begin = System.nanoTime();
    try {
      String exec = e.properties() == null ? null : e.properties().getProperty("spark.sql.execution.id");
      Object key = exec == null ? (Object) ("job" + e.jobId()) : (Object) Long.valueOf(exec);
      scala.collection.Iterator it = e.stageIds().iterator();
      while (it.hasNext()) owner.put(it.next(), key);
      members.put(Integer.valueOf(e.jobId()), e.stageIds());
      if (extended && context != null && !full()) job(e, exec);
      if (exec != null || context == null) return;
      jobs.add(Integer.valueOf(e.jobId()));
      StringBuilder out = head("job_start", e.jobId(), e.time());
      String site = e.properties() == null ? null : e.properties().getProperty("callSite.short");
      if (site != null) out.append(",\"description\":").append(quote(clean(site)));
      scala.Option job = context.dagScheduler().jobIdToActiveJob().get(Integer.valueOf(e.jobId())); // may be over already
      if (job.isDefined()) {
        Stage last = ((ActiveJob) job.get()).finalStage();
        out.append(",\"rdd\":");
        rdd(out, last.rdd());
        if (last instanceof ResultStage) out.append(",\"path\":").append(quote(target(((ResultStage) last).func())));
      }
      out.append(",\"names\":[");
      boolean any = false;
      scala.collection.Iterator st = e.stageInfos().iterator();
      while (st.hasNext()) {
        scala.collection.Iterator rs = ((StageInfo) st.next()).rddInfos().iterator();
        while (rs.hasNext()) { if (any) out.append(","); any = true; out.append(quote(((org.apache.spark.storage.RDDInfo) rs.next()).name())); }
      }
      offer(out.append("]}").toString());
    } catch (Throwable t) { failed(t); } finally { nanos += System.nanoTime() - begin; }
  }

  public void onStageCompleted(SparkListenerStageCompleted e) {
    try {
      Object key = owner.remove(Integer.valueOf(e.stageInfo().stageId()));
      if (extended && key != null && !full()) stageEnd(e.stageInfo(), key);
      if (key == null || e.stageInfo().taskMetrics() == null) return;
      long rows = e.stageInfo().taskMetrics().outputMetrics().recordsWritten();
      long bytes = e.stageInfo().taskMetrics().outputMetrics().bytesWritten();
      if (rows == 0 && bytes == 0) return;
      long[] sum = (long[]) written.get(key);
      if (sum == null) { sum = new long[2]; written.put(key, sum); }
      sum[0] += rows;
      sum[1] += bytes;
    } catch (Throwable t) { failed(t); }
  }

  public void onJobEnd(SparkListenerJobEnd e) {
    try {
      scala.collection.Seq ids = (scala.collection.Seq) members.remove(Integer.valueOf(e.jobId()));
      if (extended && ids != null && !full()) jobEnd(e, ids);
      scala.collection.Iterator it = ids == null ? null : ids.iterator();
      while (it != null && it.hasNext()) { Object id = it.next(); owner.remove(id); stages.remove(id); } // those that were skipped never complete
      if (!jobs.remove(Integer.valueOf(e.jobId()))) return;
      String key = "job" + e.jobId();
      StringBuilder out = head("job_end", e.jobId(), e.time());
      if (!(e.jobResult() instanceof JobSucceeded$)) out.append(",\"error\":").append(quote(String.valueOf(e.jobResult())));
      counts(out, key);
      offer(out.append("}").toString());
    } catch (Throwable t) { failed(t); }
  }

  public void onApplicationEnd(SparkListenerApplicationEnd end) { offer("{\"kind\":\"app_end\",\"time\":" + end.time() + "}"); }

  /** Nobody waits here. A full queue takes the ends of runs, without their plans; one that nobody reads takes nothing more, and counts. */
  private boolean full() { return held.get() > room; }
  private void offer(String record) {
    if (held.get() > 4 * room && !record.startsWith("{\"kind\":\"app_end")) { lost.incrementAndGet(); return; }
    held.addAndGet(record.length());
    queue.offer(record);
  }

  private StringBuilder head(String kind, long id, long time) {
    return new StringBuilder(4096).append("{\"kind\":\"").append(kind).append("\",\"id\":").append(id).append(",\"time\":").append(time);
  }

  private void counts(StringBuilder out, Object key) {
    long[] sum = (long[]) written.remove(key);
    if (sum != null) out.append(",\"written\":[").append(sum[0]).append(",").append(sum[1]).append("]");
  }

  /** [class, rows, files, bytes, where] of each node that counts: writes and scans. */
  private void metrics(StringBuilder out, SparkPlan node, boolean[] any) {
    Object rows = metric(node, "numOutputRows");
    Object progress = call(node, "commitProgress"); // v2 writes
    if (progress instanceof scala.Option && ((scala.Option) progress).isDefined()) rows = call(((scala.Option) progress).get(), "numOutputRows");
    if (rows != null) {
      if (any[0]) out.append(",");
      any[0] = true;
      Object bytes = metric(node, "numOutputBytes");
      out.append("[").append(name(node)).append(",").append(rows).append(",").append(metric(node, "numFiles")).append(",").append(bytes == null ? metric(node, "filesSize") : bytes);
      Object relation = call(node, "relation");
      Object table = call(node, "table");
      if (node.children().isEmpty() && relation instanceof HadoopFsRelation) { out.append(","); roots(out, ((HadoopFsRelation) relation).location()); }
      else if (node.children().isEmpty() && relation instanceof BaseRelation) { out.append(","); relation(out, relation, 0); } // JDBC
      else if (node.children().isEmpty() && call(relation, "tableMeta") instanceof CatalogTable) { // Hive
        out.append(",{\"t\":\"hive\",\"location\":");
        value(out, ((CatalogTable) call(relation, "tableMeta")).storage(), 0);
        out.append("}");
      }
      else if (node.children().isEmpty() && table instanceof Table) { out.append(","); try { value(out, table, 0); } catch (Throwable t) { out.append("null"); } }
      out.append("]");
    }
    if (node instanceof AdaptiveSparkPlanExec) metrics(out, ((AdaptiveSparkPlanExec) node).executedPlan(), any);
    else if (node instanceof QueryStageExec) metrics(out, ((QueryStageExec) node).plan(), any);
    scala.collection.Iterator it = node.children().iterator();
    while (it.hasNext()) metrics(out, (SparkPlan) it.next(), any);
  }

  private static Object metric(SparkPlan node, String name) {
    scala.Option found = node.metrics().get(name);
    return found.isDefined() ? ((org.apache.spark.util.AccumulatorV2) found.get()).value() : null;
  }

  // ------------------------------------------------------------------ plans: nodes in post-order, "#" refers to one by index
  private QueryExecution current; // the listener bus calls from one thread
  private StringBuilder nodes;
  private IdentityHashMap index;
  private boolean topics; // inside a column called topic: Kafka's sink sends each row where it says

  /** The statement that a plan was parsed from: the topmost node that knows it. */
  private static String text(LogicalPlan root) {
    LogicalPlan p = root;
    for (int depth = 0; depth < 200; depth++) {
      Object found = call(p.origin(), "sqlText");
      if (found instanceof scala.Option && ((scala.Option) found).isDefined()) return (String) ((scala.Option) found).get();
      if (p.children().isEmpty()) return null;
      p = (LogicalPlan) p.children().head();
    }
    return null;
  }

  /** The tables that a statement about tables names: field -> identifier. Others name theirs in relations. */
  private LinkedHashMap idents(LogicalPlan root) {
    LinkedHashMap found = new LinkedHashMap();
    String name = name(root);
    if (root.children().size() > 1 || !(name.endsWith("Command\"") || name.indexOf("Table") >= 0 || name.indexOf("View") >= 0 || name.indexOf("Column") >= 0)) return found;
    if (name.startsWith("\"Insert") || name.startsWith("\"Append") || name.indexOf("AsSelect") >= 0) return found;
    scala.Product product = (scala.Product) root;
    String[] names = names(root);
    for (int i = 0; i < product.productArity(); i++) {
      Object v = product.productElement(i);
      if (v instanceof TableIdentifier) found.put(names[i], v);
      else if (v instanceof LogicalPlan && "\"ResolvedIdentifier\"".equals(name(v))) {
        Object catalog = call(v, "catalog");
        Object id = call(v, "identifier");
        if (catalog instanceof CatalogPlugin && "spark_catalog".equals(((CatalogPlugin) catalog).name()) && id instanceof Identifier && ((Identifier) id).namespace().length == 1)
          found.put(names[i], new TableIdentifier(((Identifier) id).name(), new scala.Some(((Identifier) id).namespace()[0])));
      }
    }
    return found;
  }

  /** The versions that tables have now, after the commit: asked of what is in memory, by reflection, guarded. */
  private void versions(StringBuilder out, QueryExecution qe, LinkedHashSet paths) {
    StringBuilder all = new StringBuilder();
    try {
      LogicalPlan root = qe.analyzed();
      Object target = call(root, "table");
      if (target == null) target = call(root, "originalTable");
      Object table = call(target, "table");
      if (table != null && table.getClass().getName().endsWith("RowLevelOperationTable")) table = call(table, "table");
      Object own = call(table, "table"); // Iceberg's own
      if (call(own, "currentSnapshot") != null || call(own, "location") instanceof String) {
        call(own, "refresh");
        Object id = call(call(own, "currentSnapshot"), "snapshotId");
        if (id != null) all.append(quote(String.valueOf(call(own, "location")))).append(":").append(quote(String.valueOf(id)));
      }
    } catch (Throwable t) { /* not such a table */ }
    if (paths != null) {
      java.util.Iterator it = paths.iterator();
      while (it.hasNext()) {
        String where = (String) it.next();
        if (where.indexOf("/_delta_log") >= 0) continue; // a file of its own log is no table
        try {
          Class log = Class.forName("org.apache.spark.sql.delta.DeltaLog", true, Thread.currentThread().getContextClassLoader());
          Method[] ms = log.getMethods();
          for (int i = 0; i < ms.length; i++) {
            Class[] ps = ms[i].getParameterTypes();
            if (!"forTable".equals(ms[i].getName()) || ps.length != 2 || ps[1] != String.class) continue;
            Object version = call(call(ms[i].invoke(null, new Object[] {qe.sparkSession(), where}), "unsafeVolatileSnapshot"), "version");
            if (version == null) continue;
            if (all.length() > 0) all.append(",");
            all.append(quote(where)).append(":").append(quote(String.valueOf(version)));
            break;
          }
        } catch (Throwable t) { /* no Delta here */ }
      }
    }
    if (all.length() > 0) out.append(",\"versions\":{").append(all).append("}");
  }

  private void tables(StringBuilder out, LinkedHashMap named) { // live calls, guarded: what the catalog says now
    out.append(",\"tables\":{");
    boolean first = true;
    java.util.Iterator it = named.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry e = (Map.Entry) it.next();
      TableIdentifier id = (TableIdentifier) e.getValue();
      StringBuilder one = new StringBuilder(256);
      try {
        org.apache.spark.sql.catalyst.catalog.SessionCatalog catalog = current.sparkSession().sessionState().catalog();
        if (!id.database().isDefined()) id = new TableIdentifier(id.table(), new scala.Some(catalog.getCurrentDatabase()));
        CatalogTable known = null;
        try { known = catalog.getTableMetadata(id); } catch (Throwable gone) { /* dropped already, or not made yet */ }
        if (known != null) table(one, known);
        else {
          one.append("{\"t\":\"table\",\"ident\":");
          ident(one, id);
          one.append(",\"location\":").append(quote(String.valueOf(catalog.defaultTablePath(id)))).append("}");
        }
      } catch (Throwable t) { continue; }
      if (!first) out.append(",");
      first = false;
      out.append(quote((String) e.getKey())).append(":").append(one);
    }
    out.append("}");
  }

  /** What names tables: catalogs, warehouse and metastore as this session has them now; written down when they changed. */
  private void naming(StringBuilder out, QueryExecution qe) {
    java.util.TreeMap found = new java.util.TreeMap();
    try {
      org.apache.spark.sql.internal.SQLConf conf = qe.sparkSession().sessionState().conf();
      scala.collection.Iterator it = conf.getAllConfs().iterator();
      while (it.hasNext()) {
        scala.Tuple2 each = (scala.Tuple2) it.next();
        if (((String) each._1()).startsWith("spark.sql.catalog.")) found.put(each._1(), each._2());
      }
      found.put("spark.sql.warehouse.dir", conf.warehousePath());
      found.put("spark.sql.catalogImplementation", conf.getConfString("spark.sql.catalogImplementation", "in-memory"));
      String[] keys = new String[] {"hive.metastore.uris", "hive.metastore.client.factory.class", "hive.metastore.glue.catalogid", "aws.region"};
      for (int i = 0; context != null && i < keys.length; i++) { // a hive-site.xml is part of it
        String value = context.hadoopConfiguration().get(keys[i]);
        if (value != null) found.put("spark.hadoop." + keys[i], value);
      }
    } catch (Throwable t) { return; } // a session of another kind
    StringBuilder made = new StringBuilder(256).append("{");
    java.util.Iterator it = found.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry each = (Map.Entry) it.next();
      if (made.length() > 1) made.append(",");
      made.append(quote((String) each.getKey())).append(":").append(quote((String) each.getValue()));
    }
    String now = made.append("}").toString();
    if (now.equals(naming)) return;
    naming = now;
    out.append(",\"conf\":").append(now);
  }

  private void plan(StringBuilder out, QueryExecution qe) {
    LogicalPlan analyzed = null;
    try { analyzed = qe.analyzed(); } catch (Throwable refused) { return; } // 4.x opens an execution for a query that cannot be analysed
    if (shows(qe, analyzed)) return;
    current = qe;
    nodes = new StringBuilder(8192);
    index = new IdentityHashMap();
    deltas = new LinkedHashSet();
    node(analyzed);
    Object options = call(analyzed, "options"); // df.write.format("delta").save(path)
    if (options instanceof scala.collection.Map && String.valueOf(call(analyzed, "dataSource")).indexOf("elta") >= 0) {
      scala.Option where = ((scala.collection.Map) options).get("path");
      if (where.isDefined()) deltas.add(String.valueOf(where.get()));
    }
    if (name(analyzed).indexOf("TableAsSelect") >= 0 && String.valueOf(call(call(analyzed, "tableSpec"), "provider")).toLowerCase().indexOf("delta") >= 0) {
      Object target = call(analyzed, "name");
      String where = target instanceof LogicalPlan ? place((LogicalPlan) target) : null;
      if (where != null) deltas.add(where);
    }
    if (!deltas.isEmpty()) touched.put(Long.valueOf(execution), deltas);
    out.append(",\"plan\":[").append(nodes).append("]");
    naming(out, qe);
    String sql = text(analyzed);
    if (sql != null) out.append(",\"sql\":").append(quote(clean(sql.length() > 250000 ? sql.substring(0, 250000) : sql)));
    LinkedHashMap named = idents(analyzed);
    if (!named.isEmpty()) {
      changes.put(Long.valueOf(execution), named);
      tables(out, named);
    }
    current = null;
    nodes = null;
    index = null;
    deltas = null;
  }

  /** Whether it only shows what a statement gave, as `sql("INSERT ...").collect()`: an execution of its own has run that before. */
  private static boolean shows(QueryExecution qe, LogicalPlan analyzed) {
    if (!"ALL".equals(String.valueOf(call(qe, "mode")))) return false;
    if (analyzed instanceof Command) return true;
    if (!(analyzed instanceof Union)) return false;
    scala.collection.Iterator it = analyzed.children().iterator(); // FROM t INSERT ... INSERT ...
    while (it.hasNext()) if (!(it.next() instanceof Command)) return false;
    return true;
  }

  private int node(LogicalPlan p) {
    Integer seen = (Integer) index.get(p);
    if (seen != null) return seen.intValue();
    String name = name(p);
    boolean opaque = "\"CommandResult\"".equals(name) || "\"ExplainCommand\"".equals(name);
    scala.collection.Iterator it = p.children().iterator();
    while (!opaque && it.hasNext()) node((LogicalPlan) it.next()); // children first: CTE definitions, outer sides of subqueries
    StringBuilder out = new StringBuilder(256).append("{\"n\":").append(name);
    if (extended) out.append(",\"c\":").append(quote(p.getClass().getName()));
    scala.Product product = (scala.Product) p;
    String[] names = names(p);
    for (int i = 0; !opaque && i < product.productArity(); i++) {
      Object v = product.productElement(i);
      if (v == null || v == scala.None$.MODULE$ || "output".equals(names[i]) && p.children().isEmpty()) continue;
      out.append(",").append(quote(names[i])).append(":");
      value(out, v, 0);
      if (v instanceof LogicalPlan && ("query".equals(names[i]) || "plan".equals(names[i]))) { // what a command writes, with types
        out.append(",\"q\":");
        attributes(out, (LogicalPlan) v);
      }
    }
    if (p.children().isEmpty() || !passing.contains(name)) {
      out.append(",\"o\":");
      attributes(out, p);
    }
    if (texts) {
      String why = why(p, name);
      if (why != null) out.append(",\"text\":").append(quote(why));
    }
    if ("\"CloneTableCommand\"".equals(name) && call(p, "targetPath") != null) deltas.add(String.valueOf(call(p, "targetPath")));
    if ("\"RestoreTableCommand\"".equals(name)) { // the table as it is to be again
      out.append(",\"table\":");
      value(out, call(call(p, "sourceTable"), "catalogTable"), 0);
      out.append(",\"schema\":");
      value(out, call(call(p, "sourceTable"), "schema"), 0);
    }
    if ("\"ResolvedIdentifier\"".equals(name)) {
      String where = place(p);
      if (where != null) out.append(",\"location\":").append(quote(where));
    }
    int at = index.size();
    index.put(p, Integer.valueOf(at));
    if (at > 0) nodes.append(",");
    nodes.append(out).append("}");
    return at;
  }

  /** What a node decides on rows by, as SQL. */
  private static String why(LogicalPlan p, String name) {
    String word = "\"Filter\"".equals(name) ? "WHERE " : "\"Join\"".equals(name) ? "JOIN ON " : "\"Aggregate\"".equals(name) ? "GROUP BY " : "\"Sort\"".equals(name) ? "SORT BY " : null;
    if (word == null) return null;
    Object by = call(p, "\"Aggregate\"".equals(name) ? "groupingExpressions" : "\"Sort\"".equals(name) ? "order" : "condition");
    if (by instanceof scala.Option) by = ((scala.Option) by).isDefined() ? ((scala.Option) by).get() : null;
    if ("\"Join\"".equals(name)) word = String.valueOf(call(call(p, "joinType"), "sql")) + " " + word;
    if (by instanceof Expression) { String sql = sql((Expression) by); return sql == null ? null : word + sql; }
    if (!(by instanceof scala.collection.Seq) || ((scala.collection.Seq) by).isEmpty()) return null;
    StringBuilder out = new StringBuilder(word);
    boolean first = true;
    scala.collection.Iterator it = ((scala.collection.Seq) by).iterator();
    while (it.hasNext() && out.length() < TEXT) { if (!first) out.append(", "); first = false; out.append(sql((Expression) it.next())); }
    return out.toString();
  }

  private static String sql(Expression e) {
    try {
      String text = e.sql();
      return clean(text.length() > TEXT ? text.substring(0, TEXT) : text);
    } catch (Throwable t) { return null; } // not every expression can say it
  }

  /** Where a table of the session catalog lies, or will: a live call, guarded. */
  private String place(LogicalPlan ident) {
    try {
      Object plugin = call(ident, "catalog");
      Object id = call(ident, "identifier");
      if (!(plugin instanceof CatalogPlugin) || !"spark_catalog".equals(((CatalogPlugin) plugin).name()) || ((Identifier) id).namespace().length != 1) return null;
      TableIdentifier table = new TableIdentifier(((Identifier) id).name(), new scala.Some(((Identifier) id).namespace()[0]));
      org.apache.spark.sql.catalyst.catalog.SessionCatalog catalog = current.sparkSession().sessionState().catalog();
      try {
        CatalogTable known = catalog.getTableMetadata(table);
        if (known.storage().locationUri().isDefined()) return String.valueOf(known.storage().locationUri().get());
      } catch (Throwable absent) { /* not made yet */ }
      return String.valueOf(catalog.defaultTablePath(table));
    } catch (Throwable t) { return null; }
  }

  private void attributes(StringBuilder out, LogicalPlan p) {
    out.append("[");
    scala.collection.Iterator attrs = p.output().iterator();
    boolean first = true;
    while (attrs.hasNext()) {
      Attribute a = (Attribute) attrs.next();
      if (!first) out.append(",");
      first = false;
      out.append("[").append(a.exprId().id()).append(",").append(quote(a.name())).append(",").append(quote(a.dataType().catalogString()));
      out.append(a.metadata().contains("__metadata_col") ? ",1]" : "]"); // a hidden column, such as _file
    }
    out.append("]");
  }

  private void expression(StringBuilder out, Expression e) {
    if (e instanceof AttributeReference) {
      AttributeReference a = (AttributeReference) e;
      out.append("[\"@\",").append(a.exprId().id()).append(",").append(quote(a.name())).append("]");
      return;
    }
    if (e instanceof Literal) { // values stay inside, but for the topics that rows are sent to
      if (topics && ((Literal) e).value() instanceof org.apache.spark.unsafe.types.UTF8String) out.append("[\"L\",").append(quote(String.valueOf(((Literal) e).value()))).append("]");
      else out.append("[\"L\"]");
      return;
    }
    if (e instanceof Alias) {
      Alias a = (Alias) e;
      out.append("[\"=\",").append(a.exprId().id()).append(",").append(quote(a.name())).append(",");
      boolean before = topics;
      topics = "topic".equalsIgnoreCase(a.name());
      expression(out, a.child());
      topics = before;
      if (texts && !(a.child() instanceof AttributeReference)) {
        String sql = sql(a.child());
        if (sql != null) out.append(",").append(quote(sql));
      }
      out.append("]");
      return;
    }
    if (e instanceof OuterReference) { expression(out, (Expression) ((OuterReference) e).e()); return; } // it calls itself a leaf
    if (e instanceof Cast && ((Cast) e).child().dataType().equals(((Cast) e).dataType())) { expression(out, ((Cast) e).child()); return; } // inserts before 4.1
    if (e instanceof GetStructField || e instanceof GetArrayStructFields) { // a field, of a struct or of each struct of an array
      DataType of = ((Expression) e.children().head()).dataType(); // the expression itself has the field as the query spells it
      if (of instanceof ArrayType) of = ((ArrayType) of).elementType();
      int at = e instanceof GetStructField ? ((GetStructField) e).ordinal() : ((GetArrayStructFields) e).ordinal();
      out.append("[\".\",").append(quote(((StructType) of).fields()[at].name())).append(",");
      expression(out, (Expression) e.children().head());
      out.append("]");
      return;
    }
    if (e instanceof CreateNamedStruct) { // ["{}", [names], values...]
      out.append("[\"{}\",[");
      scala.collection.Iterator ns = ((CreateNamedStruct) e).names().iterator();
      boolean first = true;
      while (ns.hasNext()) { if (!first) out.append(","); first = false; out.append(quote(String.valueOf(ns.next()))); }
      out.append("]");
      scala.collection.Iterator vs = ((CreateNamedStruct) e).valExprs().iterator();
      while (vs.hasNext()) { out.append(","); expression(out, (Expression) vs.next()); }
      out.append("]");
      return;
    }
    String name = name(e);
    if (e instanceof GetArrayItem || e instanceof GetMapValue || "\"ElementAt\"".equals(name)) name = "\"[]\"";
    if (e instanceof PlanExpression && ((PlanExpression) e).plan() instanceof LogicalPlan) {
      int at = node((LogicalPlan) ((PlanExpression) e).plan());
      out.append("[\"$\",").append(name).append(",").append(at);
    } else {
      out.append("[").append(name);
      if ("\"DeltaMergeAction\"".equals(name)) { out.append(","); value(out, call(e, "targetColNameParts"), 0); }
      if ("\"WithField\"".equals(name)) out.append(",").append(quote(String.valueOf(call(e, "name"))));
      if (name.endsWith("TableSpec\"")) { out.append(","); value(out, call(e, "location"), 0); out.append(","); value(out, call(e, "provider"), 0); }
    }
    scala.collection.Iterator it = e.children().iterator();
    while (it.hasNext()) { out.append(","); expression(out, (Expression) it.next()); }
    out.append("]");
  }

  // ------------------------------------------------------------------ values of fields, and what names a dataset
  private void value(StringBuilder out, Object o, int depth) {
    if (o == null || depth > 8) out.append("null");
    else if (o instanceof Expression) expression(out, (Expression) o);
    else if (o instanceof LogicalPlan) out.append("{\"#\":").append(node((LogicalPlan) o)).append("}");
    else if (o instanceof String) out.append(quote(clean((String) o)));
    else if (o instanceof Boolean || o instanceof Integer || o instanceof Long) out.append(o.toString());
    else if (o instanceof scala.Option) value(out, ((scala.Option) o).isDefined() ? ((scala.Option) o).get() : null, depth);
    else if (o instanceof StructType) schema(out, (StructType) o);
    else if (o instanceof scala.collection.Map) map(out, scala.collection.JavaConverters.mapAsJavaMap((scala.collection.Map) o), depth);
    else if (o instanceof Map) map(out, (Map) o, depth);
    else if (o instanceof scala.collection.Seq) {
      out.append("[");
      boolean first = true;
      scala.collection.Iterator it = ((scala.collection.Seq) o).iterator();
      while (it.hasNext()) { if (!first) out.append(","); first = false; value(out, it.next(), depth + 1); }
      out.append("]");
    } else if (o instanceof DataType) out.append(quote(((DataType) o).catalogString()));
    else if (o instanceof CatalogTable) table(out, (CatalogTable) o);
    else if (o instanceof TableIdentifier) ident(out, (TableIdentifier) o);
    else if (o instanceof HadoopFsRelation) {
      HadoopFsRelation r = (HadoopFsRelation) o;
      out.append("{\"t\":\"files\",\"format\":").append(name(r.fileFormat()));
      if (directories(r.location()) != null) out.append(",\"dirs\":1");
      out.append(",\"paths\":");
      roots(out, r.location());
      if (r.location().getClass().getName().indexOf("delta") >= 0) {
        Object version = call(r.location(), "version"); // tableVersion before Delta 4
        if (version == null) version = call(r.location(), "tableVersion");
        if (version != null) out.append(",\"version\":").append(quote(String.valueOf(version)));
        Object where = r.location().rootPaths().isEmpty() ? null : r.location().rootPaths().head();
        if (where != null && deltas != null) deltas.add(String.valueOf(where));
      }
      out.append("}");
    } else if (o instanceof FileIndex) roots(out, (FileIndex) o);
    else if (o instanceof BaseRelation) relation(out, o, depth);
    else if (o.getClass().getName().endsWith("Sink")) // a Sink is a Table too, but only its text tells where it writes
      out.append("{\"t\":\"sink\",\"class\":").append(name(o)).append(",\"text\":").append(quote(String.valueOf(o))).append("}");
    else if (o instanceof Table) v2(out, (Table) o, depth);
    else if (o instanceof CatalogPlugin) out.append("{\"t\":\"catalog\",\"name\":").append(quote(((CatalogPlugin) o).name())).append(",\"class\":").append(quote(o.getClass().getName())).append("}");
    else if (o instanceof Identifier) {
      out.append("{\"t\":\"ident\",\"id\":[");
      String[] ns = ((Identifier) o).namespace();
      for (int i = 0; i < ns.length; i++) out.append(quote(ns[i])).append(",");
      out.append(quote(((Identifier) o).name())).append("]}");
    } else if (o instanceof org.apache.spark.sql.connector.read.Scan) { // all that a streaming relation of 3.5 has
      out.append("{\"t\":\"v2\",\"class\":").append(name(o));
      Object given = field(o, "options");
      if (given instanceof Map) { out.append(",\"options\":"); map(out, (Map) given, depth); }
      Object where = call(call(o, "table"), "location"); // Iceberg
      if (where instanceof String) out.append(",\"location\":").append(quote((String) where));
      out.append("}");
    } else if (o instanceof RDD) rdd(out, (RDD) o);
    else if (o.getClass().getName().startsWith("scala.Tuple")) { // a view's column and its comment
      scala.Product pair = (scala.Product) o;
      out.append("[");
      for (int i = 0; i < pair.productArity(); i++) { if (i > 0) out.append(","); value(out, pair.productElement(i), depth + 1); }
      out.append("]");
    }
    else if (o instanceof Path || o instanceof java.net.URI || o instanceof JoinType || o instanceof Enum) out.append(quote(o.toString()));
    else if (o instanceof org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat) value(out, ((org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat) o).locationUri(), depth);
    else if (o.getClass().getName().indexOf(".delta.commands.Clone") >= 0 && call(o, "dataPath") instanceof Path) { // what CLONE takes over
      out.append("{\"t\":\"clone\",\"location\":").append(quote(clean(String.valueOf(call(o, "dataPath")))));
      out.append(",\"table\":");
      value(out, call(o, "catalogTable"), depth + 1);
      Object snapshot = call(o, "snapshot");
      Object version = snapshot instanceof scala.Option && ((scala.Option) snapshot).isDefined() ? call(((scala.Option) snapshot).get(), "version") : null;
      if (version != null) out.append(",\"version\":").append(quote(String.valueOf(version)));
      out.append("}");
    }
    else out.append(quote(o.getClass().getName()));
  }

  private void roots(StringBuilder out, FileIndex files) {
    LinkedHashSet dirs = directories(files);
    if (dirs == null) { value(out, files.rootPaths(), 0); return; }
    out.append("[");
    java.util.Iterator it = dirs.iterator();
    for (boolean first = true; it.hasNext(); first = false) { if (!first) out.append(","); out.append(quote(String.valueOf(it.next()))); }
    out.append("]");
  }

  /** Several files, named one by one or by a pattern, are parts of the directories they lie in; null where there are none. */
  private static LinkedHashSet directories(FileIndex files) {
    if (files.rootPaths().size() < 2) return null;
    Object leaves = call(files, "leafFiles"); // listed already
    if (!(leaves instanceof scala.collection.Map)) return null;
    LinkedHashSet found = new LinkedHashSet();
    boolean any = false;
    scala.collection.Iterator it = files.rootPaths().iterator();
    while (it.hasNext()) {
      Path root = (Path) it.next();
      boolean file = ((scala.collection.Map) leaves).contains(root);
      any |= file;
      found.add(file ? root.getParent() : root);
    }
    return any ? found : null;
  }

  private void map(StringBuilder out, Map m, int depth) {
    out.append("{");
    boolean first = true;
    java.util.Iterator it = m.entrySet().iterator();
    while (it.hasNext()) {
      Map.Entry e = (Map.Entry) it.next();
      if (!(e.getKey() instanceof String)) continue;
      String k = (String) e.getKey();
      if (!first) out.append(",");
      first = false;
      out.append(quote(k)).append(":");
      String l = k.toLowerCase();
      if (l.indexOf("password") >= 0 || l.indexOf("secret") >= 0 || l.indexOf("token") >= 0 || l.indexOf("credential") >= 0 || l.endsWith("key")) out.append("\"***\"");
      else value(out, e.getValue(), depth + 1);
    }
    out.append("}");
  }

  private void schema(StringBuilder out, StructType s) {
    StructField[] fs = s.fields();
    out.append("[");
    for (int i = 0; i < fs.length; i++) {
      if (i > 0) out.append(",");
      out.append("[").append(quote(fs[i].name())).append(",").append(quote(fs[i].dataType().catalogString())).append("]");
    }
    out.append("]");
  }

  private void ident(StringBuilder out, TableIdentifier id) {
    out.append("{\"t\":\"ident\",\"id\":[");
    Object catalog = call(id, "catalog");
    if (catalog instanceof scala.Option && ((scala.Option) catalog).isDefined()) out.append(quote((String) ((scala.Option) catalog).get())).append(",");
    if (id.database().isDefined()) out.append(quote((String) id.database().get())).append(",");
    out.append(quote(id.table())).append("]}");
  }

  private void table(StringBuilder out, CatalogTable t) {
    TableIdentifier id = t.identifier();
    try { // a live call: saveAsTable of 4.1 leaves out the database that is the current one
      if (!id.database().isDefined()) id = new TableIdentifier(id.table(), new scala.Some(current.sparkSession().sessionState().catalog().getCurrentDatabase()));
    } catch (Throwable x) { /* a catalog that is away: the name alone */ }
    out.append("{\"t\":\"table\",\"ident\":");
    ident(out, id);
    String where = null;
    if (t.storage().locationUri().isDefined()) where = String.valueOf(t.storage().locationUri().get());
    else try { // a live call: where the catalog will put a table that does not exist yet
      where = String.valueOf(current.sparkSession().sessionState().catalog().defaultTablePath(t.identifier()));
    } catch (Throwable x) { /* a view, or no such database */ }
    out.append(",\"location\":").append(quote(where)).append(",\"type\":").append(quote(t.tableType().name())).append(",\"provider\":");
    value(out, t.provider(), 0);
    out.append(",\"schema\":");
    schema(out, t.schema());
    out.append("}");
  }

  private void relation(StringBuilder out, Object o, int depth) {
    out.append("{\"t\":\"relation\",\"class\":").append(name(o));
    Object options = call(o, "jdbcOptions");
    if (options != null) { out.append(",\"options\":"); value(out, call(options, "parameters"), depth); }
    else {
      options = field(o, "sourceOptions"); // Kafka
      if (options != null) { out.append(",\"options\":"); value(out, options, depth); }
      options = field(o, "strategy");
      if (options != null) out.append(",\"strategy\":").append(quote(String.valueOf(options)));
    }
    if (extended) { out.append(",\"type\":").append(quote(o.getClass().getName())).append(",\"fields\":"); inside(out, o, Object.class); }
    out.append("}");
  }

  private void v2(StringBuilder out, Table t, int depth) {
    if (t.getClass().getName().endsWith("RowLevelOperationTable")) { v2(out, (Table) call(t, "table"), depth); return; } // a wrapper without properties
    out.append("{\"t\":\"v2\",\"class\":").append(name(t)).append(",\"name\":");
    try { out.append(quote(t.name())); } catch (Throwable x) { out.append("null"); }
    if (aboutItself(call(t, "table"))) { out.append(",\"metadata\":1}"); return; } // where it lies, the rows of the table lie
    Object v = call(t, "paths"); // file tables
    if (v != null) { out.append(",\"paths\":"); value(out, v, depth); }
    v = call(t, "path"); // Delta
    if (v instanceof Path) {
      out.append(",\"location\":").append(quote(v.toString()));
      if (deltas != null && t.getClass().getName().indexOf("delta") >= 0) deltas.add(v.toString());
    }
    if (t.getClass().getName().endsWith("SparkChangelogTable")) { // Iceberg's changes of a table
      v = field(t, "table");
      if (v == null) v = field(t, "icebergTable");
      v = call(v, "location");
      if (v instanceof String) out.append(",\"location\":").append(quote((String) v));
    }
    v = call(t, "snapshotId"); // Iceberg: a version that was asked for, else the newest
    if (v == null) v = call(call(call(t, "table"), "currentSnapshot"), "snapshotId");
    if (v == null && t.getClass().getName().indexOf("delta") >= 0) {
      v = call(call(t, "initialSnapshot"), "version");
      if (v == null) v = call(call(t, "snapshot"), "version");
    }
    if (v != null) out.append(",\"version\":").append(quote(String.valueOf(v)));
    v = call(t, "options");
    if (v instanceof Map) { out.append(",\"options\":"); map(out, (Map) v, depth); }
    try { out.append(",\"properties\":"); map(out, t.properties(), depth); } catch (Throwable x) { out.append("{}"); }
    out.append("}");
  }

  /** Whether a table of Iceberg is one of its metadata tables, as t.snapshots: it has the place of t, but not its rows. */
  private static boolean aboutItself(Object table) {
    Class c = table == null ? null : table.getClass();
    while (c != null && !c.getName().endsWith("MetadataTable")) c = c.getSuperclass();
    return c != null;
  }

  // ------------------------------------------------------------------ RDDs: the files at the bottom of the dependencies
  private void rdd(StringBuilder out, RDD top) {
    out.append("{\"t\":\"rdd\",\"id\":").append(top.id()).append(",\"sources\":[");
    HashSet seen = new HashSet();
    java.util.ArrayDeque todo = new java.util.ArrayDeque();
    todo.add(top);
    boolean any = false;
    while (!todo.isEmpty() && seen.size() < 1000) {
      RDD r = (RDD) todo.poll();
      if (!seen.add(Integer.valueOf(r.id()))) continue;
      String found = source(r);
      if (found != null) {
        if (any) out.append(",");
        any = true;
        out.append(found);
      }
      scala.collection.Iterator deps = r.dependencies().iterator();
      while (deps.hasNext()) todo.add(((org.apache.spark.Dependency) deps.next()).rdd());
    }
    out.append("]}");
  }

  /** Where an RDD reads, if it is one that reads. */
  private String source(RDD r) {
    LinkedHashSet paths = new LinkedHashSet();
    StructType read = null;
    String columns = null;
    if (r instanceof HadoopRDD) {
      Path[] ps = FileInputFormat.getInputPaths((org.apache.hadoop.mapred.JobConf) ((HadoopRDD) r).getJobConf());
      for (int i = 0; i < ps.length; i++) paths.add(ps[i].toString());
    } else if (r instanceof NewHadoopRDD) {
      String dirs = ((NewHadoopRDD) r).getConf().get("mapreduce.input.fileinputformat.inputdir");
      if (dirs != null) paths.add(dirs);
    } else if (r instanceof FileScanRDD) {
      read = scanned(r);
      int n = 0;
      scala.collection.Iterator it = ((FileScanRDD) r).filePartitions().iterator();
      while (it.hasNext() && n < FILES) {
        PartitionedFile[] fs = ((FilePartition) it.next()).files();
        for (int i = 0; i < fs.length && n < FILES; i++, n++) paths.add(String.valueOf(new Path(String.valueOf(fs[i].filePath())).getParent()));
      }
    } else if (r.getClass().getName().endsWith("DataSourceRDD") && r.partitions().length > 0) { // v2 scan: Iceberg's partitions know their table
      Object inner = call(r.partitions()[0], "inputPartitions");
      if (inner instanceof scala.collection.Seq && !((scala.collection.Seq) inner).isEmpty()) {
        Object part = ((scala.collection.Seq) inner).head();
        Object table = call(part, "table");
        Object where = aboutItself(table) ? null : call(table, "location");
        if (where instanceof String) paths.add(where);
        Object text = field(part, "expectedSchemaString");
        if (text instanceof String) columns = (String) text;
      }
    }
    if (paths.isEmpty()) return null;
    StringBuilder out = new StringBuilder(256).append("{\"class\":").append(name(r)).append(",\"paths\":[");
    java.util.Iterator ps = paths.iterator();
    boolean first = true;
    while (ps.hasNext()) { if (!first) out.append(","); first = false; out.append(quote((String) ps.next())); }
    out.append("]");
    if (read != null) { out.append(",\"schema\":"); schema(out, read); }
    else if (columns != null) out.append(",\"columns\":").append(columns); // Iceberg's own JSON
    return out.append("}").toString();
  }

  private StructType scanned(Object scan) {
    Field[] fs = scan.getClass().getDeclaredFields();
    for (int i = 0; i < fs.length; i++) {
      try {
        if (fs[i].getType() == StructType.class) { fs[i].setAccessible(true); return (StructType) fs[i].get(scan); }
      } catch (Throwable t) { /* next */ }
    }
    return null;
  }

  /** The directory a job's closure commits to: RDD.saveAs... captures its committer. */
  private String target(Object closure) {
    try {
      Method m = closure.getClass().getDeclaredMethod("writeReplace", new Class[0]);
      m.setAccessible(true);
      java.lang.invoke.SerializedLambda l = (java.lang.invoke.SerializedLambda) m.invoke(closure, new Object[0]);
      for (int i = 0; i < l.getCapturedArgCount(); i++) {
        Object arg = l.getCapturedArg(i);
        if (arg == null || arg.getClass().getName().indexOf("CommitProtocol") < 0) continue;
        Object path = field(arg, "path");
        if (path == null) path = field(arg, "org$apache$spark$internal$io$HadoopMapReduceCommitProtocol$$path");
        if (path instanceof String) return (String) path;
      }
    } catch (Throwable t) { /* not such a closure */ }
    return null;
  }

  // ------------------------------------------------------------------ for extensions: jobs, stages, RDDs, and what is inside foreign objects
  private void job(SparkListenerJobStart e, String exec) {
    StringBuilder out = head("x_job_start", e.jobId(), e.time());
    if (exec != null) out.append(",\"execution\":").append(exec);
    out.append(",\"stages\":[");
    scala.collection.Iterator it = e.stageInfos().iterator();
    boolean first = true;
    while (it.hasNext()) { if (!first) out.append(","); first = false; info(out, (StageInfo) it.next()); }
    out.append("]");
    scala.Option active = context.dagScheduler().jobIdToActiveJob().get(Integer.valueOf(e.jobId())); // may be over already
    if (active.isDefined()) {
      Stage last = ((ActiveJob) active.get()).finalStage();
      java.util.ArrayDeque todo = new java.util.ArrayDeque();
      todo.add(last);
      while (!todo.isEmpty()) {
        Stage next = (Stage) todo.poll();
        if (stages.put(Integer.valueOf(next.id()), next) != null) continue;
        scala.collection.Iterator ps = next.parents().iterator();
        while (ps.hasNext()) todo.add(ps.next());
      }
      out.append(",\"active\":{\"id\":").append(e.jobId()).append(",\"stage\":");
      stage(out, last);
      out.append("}");
    }
    offer(out.append("}").toString());
  }

  private void stageEnd(StageInfo i, Object key) {
    StringBuilder out = head("x_stage_end", i.stageId(), System.currentTimeMillis());
    if (key instanceof Long) out.append(",\"execution\":").append(key);
    else out.append(",\"job\":").append(((String) key).substring(3));
    out.append(",\"info\":");
    info(out, i);
    Stage of = (Stage) stages.get(Integer.valueOf(i.stageId()));
    if (of != null) { out.append(",\"stage\":"); stage(out, of); }
    offer(out.append("}").toString());
  }

  private void jobEnd(SparkListenerJobEnd e, scala.collection.Seq ids) {
    StringBuilder out = head("x_job_end", e.jobId(), e.time());
    if (!(e.jobResult() instanceof JobSucceeded$)) out.append(",\"error\":").append(quote(clean(String.valueOf(e.jobResult()))));
    Stage last = null; // the one that no other waits for
    scala.collection.Iterator it = ids.iterator();
    while (it.hasNext()) { Stage s = (Stage) stages.get(it.next()); if (s instanceof ResultStage || last == null) last = s; }
    if (last != null) { out.append(",\"stage\":"); stage(out, last); }
    offer(out.append("}").toString());
  }

  private void info(StringBuilder out, StageInfo i) {
    out.append("{\"id\":").append(i.stageId()).append(",\"attempt\":").append(i.attemptNumber()).append(",\"name\":").append(quote(clean(i.name()))).append(",\"tasks\":").append(i.numTasks());
    if (i.submissionTime().isDefined()) out.append(",\"submitted\":").append(i.submissionTime().get());
    if (i.completionTime().isDefined()) out.append(",\"completed\":").append(i.completionTime().get());
    if (i.failureReason().isDefined()) out.append(",\"error\":").append(quote(clean((String) i.failureReason().get())));
    if (i.taskMetrics() != null) {
      out.append(",\"metrics\":{");
      scala.collection.Iterator it = i.taskMetrics().nameToAccums().iterator();
      boolean first = true;
      while (it.hasNext()) {
        scala.Tuple2 pair = (scala.Tuple2) it.next();
        Object v = ((org.apache.spark.util.AccumulatorV2) pair._2()).value();
        if (!(v instanceof Number)) continue;
        if (!first) out.append(",");
        first = false;
        out.append(quote(((String) pair._1()).replace("internal.metrics.", ""))).append(":").append(v);
      }
      out.append("}");
    }
    out.append(",\"accumulators\":{");
    scala.collection.Iterator it = i.accumulables().values().iterator();
    boolean first = true;
    for (int n = 0; it.hasNext() && n < 500; n++) {
      AccumulableInfo a = (AccumulableInfo) it.next();
      if (!a.name().isDefined() || !a.value().isDefined() || ((String) a.name().get()).startsWith("internal.")) continue;
      if (!first) out.append(",");
      first = false;
      out.append(quote((String) a.name().get())).append(":").append(a.value().get() instanceof Number ? String.valueOf(a.value().get()) : quote(String.valueOf(a.value().get())));
    }
    out.append("}}");
  }

  /** A stage with its RDDs, those of narrow dependencies unwrapped. */
  private void stage(StringBuilder out, Stage s) {
    out.append("{\"id\":").append(s.id()).append(",\"kind\":").append(name(s)).append(",\"name\":").append(quote(clean(s.name()))).append(",\"tasks\":").append(s.numTasks()).append(",\"rdds\":[");
    HashSet seen = new HashSet();
    java.util.ArrayDeque todo = new java.util.ArrayDeque();
    todo.add(s.rdd());
    while (!todo.isEmpty() && seen.size() < 200) {
      RDD r = (RDD) todo.poll();
      if (!seen.add(Integer.valueOf(r.id()))) continue;
      if (seen.size() > 1) out.append(",");
      out.append("{\"id\":").append(r.id()).append(",\"name\":").append(quote(clean(r.name()))).append(",\"classes\":[");
      Class c = r.getClass();
      while (c != null && c != RDD.class) { if (c != r.getClass()) out.append(","); out.append(quote(c.getName())); c = c.getSuperclass(); }
      out.append("],\"source\":").append(source(r)).append(",\"fields\":");
      inside(out, r, RDD.class);
      out.append("}");
      scala.collection.Iterator deps = r.dependencies().iterator();
      while (deps.hasNext()) {
        Object d = deps.next();
        if (!(d instanceof org.apache.spark.ShuffleDependency)) todo.add(((org.apache.spark.Dependency) d).rdd());
      }
    }
    out.append("]}");
  }

  /** The plain fields of an object nobody knows: texts, numbers, maps of options; secrets hidden. */
  private void inside(StringBuilder out, Object o, Class until) {
    LinkedHashMap found = new LinkedHashMap();
    Class c = o.getClass();
    while (c != null && c != until && c != Object.class && found.size() < 40) {
      Field[] fs = c.getDeclaredFields();
      for (int i = 0; i < fs.length && found.size() < 40; i++) {
        if (java.lang.reflect.Modifier.isStatic(fs[i].getModifiers())) continue;
        try {
          fs[i].setAccessible(true);
          Object v = fs[i].get(o);
          if (v instanceof scala.Option && ((scala.Option) v).isDefined()) v = ((scala.Option) v).get();
          if (v instanceof String) v = clean(((String) v).length() > 2000 ? ((String) v).substring(0, 2000) : (String) v);
          String key = fs[i].getName();
          key = key.substring(key.lastIndexOf('$') + 1);
          if (key.length() > 0 && (v instanceof String || v instanceof Number || v instanceof Boolean || v instanceof Map || v instanceof scala.collection.Map || v instanceof StructType)) found.put(key, v);
        } catch (Throwable t) { /* closed to us */ }
      }
      c = c.getSuperclass();
    }
    map(out, found, 0);
  }

  // ------------------------------------------------------------------ reflection
  private static Object call(Object o, String method) {
    if (o == null) return null;
    try { Method m = o.getClass().getMethod(method, new Class[0]); m.setAccessible(true); return m.invoke(o, new Object[0]); } catch (Throwable t) { return null; }
  }
  private static Object field(Object o, String name) {
    Class c = o.getClass();
    while (c != null) {
      try { Field f = c.getDeclaredField(name); f.setAccessible(true); return f.get(o); } catch (Throwable t) { c = c.getSuperclass(); }
    }
    return null;
  }

  private String name(Object o) {
    String s = (String) simple.get(o.getClass());
    if (s == null) {
      s = o.getClass().getName();
      int cut = Math.max(s.lastIndexOf('.'), s.endsWith("$") ? s.lastIndexOf('$', s.length() - 2) : s.lastIndexOf('$'));
      s = quote(s.substring(cut + 1));
      simple.put(o.getClass(), s);
    }
    return s;
  }

  /** Names of the fields of a case class: Scala 2.13 tells; for 2.12 the parameters of the constructor (fields are not in order). */
  private String[] names(Object o) {
    String[] ns = (String[]) fields.get(o.getClass());
    if (ns != null) return ns;
    int n = ((scala.Product) o).productArity();
    ns = new String[n];
    try {
      Method m = scala.Product.class.getMethod("productElementName", new Class[] {Integer.TYPE});
      for (int i = 0; i < n; i++) ns[i] = (String) m.invoke(o, new Object[] {Integer.valueOf(i)});
    } catch (NoSuchMethodException old) {
      java.lang.reflect.Constructor[] cs = o.getClass().getConstructors();
      for (int k = 0; k < cs.length; k++) {
        java.lang.reflect.Parameter[] ps = cs[k].getParameters();
        if (ps.length < n) continue;
        for (int i = 0; i < n; i++) ns[i] = ps[i].getName();
      }
      for (int i = 0; i < n; i++) if (ns[i] == null) ns[i] = "_" + i;
    } catch (Throwable t) { for (int i = 0; i < n; i++) ns[i] = "_" + i; }
    fields.put(o.getClass(), ns);
    return ns;
  }

  /** No secret leaves the JVM: user info of urls, and parameters that look like one. */
  private static String clean(String s) {
    if (s == null || s.indexOf(':') < 0 && s.indexOf('=') < 0) return s;
    return USERINFO.matcher(PARAMETER.matcher(s).replaceAll("$1***")).replaceAll("//");
  }
  private static final java.util.regex.Pattern USERINFO = java.util.regex.Pattern.compile("//[^/@\\s'\"]*@");
  private static final java.util.regex.Pattern PARAMETER = java.util.regex.Pattern.compile(
    "(?i)((?:password|passwd|pwd|secret|token|signature|sig|api[_-]?key|access[_-]?key|credential)[\\w.-]*\\s*[=:]\\s*)[^&;,\\s)'\"]+");

  private static String quote(String s) {
    if (s == null) return "null";
    StringBuilder out = new StringBuilder(s.length() + 16).append('"');
    for (int i = 0; i < s.length(); i++) {
      char c = s.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c == 0) out.append('\ufffd'); // no consumer takes it in a name
      else if (c < 32) out.append(String.format("\\u%04x", new Object[] {Integer.valueOf((int) c)}));
      else out.append(c);
    }
    return out.append('"').toString();
  }
}
