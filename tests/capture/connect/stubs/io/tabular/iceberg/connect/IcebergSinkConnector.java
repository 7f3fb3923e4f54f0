package io.tabular.iceberg.connect;

/** The name before it was Apache's; what runs, and writes, is Apache's own. */
public class IcebergSinkConnector extends org.apache.iceberg.connect.IcebergSinkConnector { }
