// A directory and a port -> Iceberg's REST catalog over HTTP: the adapter and servlet of Iceberg's own tests on Jetty,
// before a JDBC catalog in memory. Run as source: java -cp 'rest/*' RestCatalog.java WAREHOUSE PORT
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class RestCatalog {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.put("uri", "jdbc:sqlite:file::memory:?ic" + System.nanoTime());
    properties.put("warehouse", arguments[0]);
    Catalog backend = CatalogUtil.buildIcebergCatalog("backend", properties, new Configuration());
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(backend))), "/*");
    Server server = new Server(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])));
    server.setHandler(context);
    server.start();
    System.out.println("ready");
    server.join();
  }
}
