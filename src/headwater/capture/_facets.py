"""capture._facets: a facet's name -> where its schema stands; what every capture's facets share."""

from __future__ import annotations

from headwater.event import SPEC

SCHEMAS = {
    "schema": "1-2-0/SchemaDatasetFacet.json",
    "dataSource": "1-0-1/DatasourceDatasetFacet.json",
    "symlinks": "1-0-1/SymlinksDatasetFacet.json",
    "datasetType": "1-0-1/DatasetTypeDatasetFacet.json",
    "version": "1-0-1/DatasetVersionDatasetFacet.json",
    "catalog": "1-1-0/CatalogDatasetFacet.json",
    "storage": "1-0-1/StorageDatasetFacet.json",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet.json",
    "lineage": "1-0-0/LineageFacet.json",
    "lifecycleStateChange": "1-0-1/LifecycleStateChangeDatasetFacet.json",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet.json",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet.json",
    "parent": "1-1-0/ParentRunFacet.json",
    "errorMessage": "1-0-1/ErrorMessageRunFacet.json",
    "nominalTime": "1-0-1/NominalTimeRunFacet.json",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet.json",
    "jobType": "2-0-4/JobTypeJobFacet.json",
    "sql": "1-1-0/SQLJobFacet.json",
    "sourceCodeLocation": "1-1-0/SourceCodeLocationJobFacet.json",
    "environmentVariables": "1-0-0/EnvironmentVariablesRunFacet.json",
    "tags": "1-0-0/TagsDatasetFacet.json",
    "tags of Job": "1-0-0/TagsJobFacet.json",
    "tags of Run": "1-0-0/TagsRunFacet.json",
    "ownership": "1-0-1/OwnershipJobFacet.json",
    "ownership of Dataset": "1-0-1/OwnershipDatasetFacet.json",
    "documentation": "1-1-0/DocumentationDatasetFacet.json",
}


def schema_url(name: str) -> str:
    """Where the schema of a facet stands; of one that is our own, that of every facet.

    >>> schema_url("schema")
    'https://openlineage.io/spec/facets/1-2-0/SchemaDatasetFacet.json'
    """
    if name in SCHEMAS:
        return f"https://openlineage.io/spec/facets/{SCHEMAS[name]}"
    return f"{SPEC}#/$defs/BaseFacet"
