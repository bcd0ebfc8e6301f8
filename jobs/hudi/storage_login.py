"""Gives the JVMs of the worker and its executors the credentials of declared accounts (`jobs.storage.accounts`).

`s3a` of Hadoop 3.3.4 takes credentials from a class of Java, one for each bucket. Hadoop's own classes assume one role,
with no external id and no tags. The class of this module assumes a chain of roles, and renews the sessions while jobs
run.
"""

from __future__ import annotations

import ssl
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from py4j.protocol import Py4JError

from jobs.storage import accounts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SOURCE = """
package groundskeeper;

import com.amazonaws.AmazonServiceException;
import com.amazonaws.ClientConfiguration;
import com.amazonaws.SdkClientException;
import com.amazonaws.auth.AWSCredentials;
import com.amazonaws.auth.AWSCredentialsProvider;
import com.amazonaws.auth.AWSStaticCredentialsProvider;
import com.amazonaws.auth.AnonymousAWSCredentials;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.auth.BasicSessionCredentials;
import com.amazonaws.auth.EC2ContainerCredentialsProviderWrapper;
import com.amazonaws.auth.EnvironmentVariableCredentialsProvider;
import com.amazonaws.auth.InstanceProfileCredentialsProvider;
import com.amazonaws.auth.ProcessCredentialsProvider;
import com.amazonaws.client.builder.AwsClientBuilder;
import com.amazonaws.services.securitytoken.AWSSecurityTokenService;
import com.amazonaws.services.securitytoken.AWSSecurityTokenServiceClientBuilder;
import com.amazonaws.services.securitytoken.model.AssumeRoleRequest;
import com.amazonaws.services.securitytoken.model.AssumeRoleWithWebIdentityRequest;
import com.amazonaws.services.securitytoken.model.Credentials;
import com.amazonaws.services.securitytoken.model.Tag;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

public class StorageLogin implements AWSCredentialsProvider {
  private final Map account;
  private AWSCredentialsProvider source;
  private AWSCredentials session;
  private long renewAt;
  private long endsAt;

  public StorageLogin(URI uri, Configuration conf) throws IOException {
    // Hadoop's own variables are not substituted, because a policy may have variables of its own.
    String text = conf.getRaw("fs.s3a.OPTION");
    List found = text == null ? Collections.EMPTY_LIST : (List) new ObjectMapper().readValue(text, List.class);
    if (found.size() != 1) {
      throw new IOException("the bucket of " + uri + " has " + found.size() + " accounts in the worker's settings");
    }
    this.account = (Map) found.get(0);
  }

  public synchronized AWSCredentials getCredentials() {
    long now = System.currentTimeMillis();
    if (session == null || now >= renewAt) {
      try {
        begin();
      } catch (RuntimeException e) {
        if (session == null || now >= endsAt) {
          throw e;
        }
        renewAt = Math.min(now + 30000L, endsAt);
      }
    }
    return session;
  }

  public synchronized void refresh() {
    session = null;
    if (source != null) {
      source.refresh();
    }
  }

  private void begin() {
    List roles = account.get("roles") == null ? Collections.EMPTY_LIST : (List) account.get("roles");
    boolean web = account.get("source").equals("web_identity");
    AWSCredentials found = web ? new AnonymousAWSCredentials() : first();
    // The SDK's providers renew their credentials; the session of a role is renewed here, before its end.
    long now = System.currentTimeMillis();
    long renew = roles.isEmpty() ? now : Long.MAX_VALUE;
    long ends = now;
    for (int i = 0; i < roles.size(); i++) {
      Map role = (Map) roles.get(i);
      Credentials given = web && i == 0 ? byWebIdentity(role) : assumed(role, found);
      found = new BasicSessionCredentials(given.getAccessKeyId(), given.getSecretAccessKey(), given.getSessionToken());
      ends = given.getExpiration().getTime();
      renew = ends - Math.min(900000L, (long) (MARGIN * (ends - System.currentTimeMillis())));
    }
    session = found;
    renewAt = renew;
    endsAt = ends;
  }

  private AWSCredentials first() {
    if (source == null) {
      String kind = (String) account.get("source");
      if (kind.equals("keys")) {
        String token = text("session_token");
        source = new AWSStaticCredentialsProvider(token == null
            ? (AWSCredentials) new BasicAWSCredentials(text("access_key"), text("secret_key"))
            : (AWSCredentials) new BasicSessionCredentials(text("access_key"), text("secret_key"), token));
      } else if (kind.equals("environment")) {
        source = new EnvironmentVariableCredentialsProvider();
      } else if (kind.equals("machine")) {
        source = InstanceProfileCredentialsProvider.getInstance();
      } else if (kind.equals("container")) {
        // Without one of these variables the SDK's class would ask the machine instead.
        if (System.getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") == null
            && System.getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") == null) {
          throw new SdkClientException("Unable to load credentials: the environment names no role of a container");
        }
        source = new EC2ContainerCredentialsProviderWrapper();
      } else if (kind.equals("profile")) {
        String python = System.getProperty("groundskeeper.python");
        if (python == null) {
          throw new SdkClientException("Unable to load credentials: executors elsewhere have no profiles");
        }
        source = ProcessCredentialsProvider.builder()
            .withCommand(python + " -m jobs.storage.aws_session '" + text("profile").replace("'", "'\\\\''") + "'")
            .withProcessOutputLimit(65536L)
            .build();
      } else {
        source = new AWSStaticCredentialsProvider(new AnonymousAWSCredentials());
      }
    }
    try {
      return source.getCredentials();
    } catch (IllegalStateException e) {
      // The command that reads a profile has failed.
      throw new SdkClientException("Unable to load credentials: the profile " + text("profile") + " gives none", e);
    }
  }

  private Credentials assumed(Map role, AWSCredentials by) {
    AssumeRoleRequest request = new AssumeRoleRequest()
        .withRoleArn((String) role.get("arn"))
        .withRoleSessionName(of(role, "session_name"))
        .withDurationSeconds((Integer) role.get("seconds"))
        .withExternalId(of(role, "external_id"))
        .withPolicy(of(role, "policy"));
    Map tags = (Map) role.get("tags");
    if (!tags.isEmpty()) {
      List found = new ArrayList();
      for (Iterator each = tags.entrySet().iterator(); each.hasNext();) {
        Map.Entry tag = (Map.Entry) each.next();
        found.add(new Tag().withKey((String) tag.getKey()).withValue((String) tag.getValue()));
      }
      request.setTags(found);
      request.setTransitiveTagKeys((List) role.get("transitive_tags"));
    }
    AWSSecurityTokenService client = client(by);
    try {
      return client.assumeRole(request).getCredentials();
    } catch (AmazonServiceException e) {
      throw refused(role, e);
    } finally {
      client.shutdown();
    }
  }

  private Credentials byWebIdentity(Map role) {
    String path = text("token_file") == null ? System.getenv("AWS_WEB_IDENTITY_TOKEN_FILE") : text("token_file");
    String token;
    try {
      // The file is read anew each time, because Kubernetes replaces it.
      token = new String(Files.readAllBytes(Paths.get(String.valueOf(path), new String[0])), "US-ASCII").trim();
    } catch (IOException e) {
      throw new SdkClientException("Unable to load credentials: the web identity token " + path + " cannot be read", e);
    }
    AWSSecurityTokenService client = client(new AnonymousAWSCredentials());
    try {
      return client.assumeRoleWithWebIdentity(new AssumeRoleWithWebIdentityRequest()
          .withRoleArn((String) role.get("arn"))
          .withRoleSessionName(of(role, "session_name"))
          .withDurationSeconds((Integer) role.get("seconds"))
          .withPolicy(of(role, "policy"))
          .withWebIdentityToken(token)).getCredentials();
    } catch (AmazonServiceException e) {
      throw refused(role, e);
    } finally {
      client.shutdown();
    }
  }

  private static SdkClientException refused(Map role, AmazonServiceException e) {
    return new SdkClientException(
        "assuming the role " + role.get("arn") + ": " + e.getErrorCode() + ": " + e.getErrorMessage(), e);
  }

  private AWSSecurityTokenService client(AWSCredentials by) {
    AWSSecurityTokenServiceClientBuilder builder = AWSSecurityTokenServiceClientBuilder.standard();
    builder.setCredentials(new AWSStaticCredentialsProvider(by));
    builder.setClientConfiguration(
        new ClientConfiguration().withConnectionTimeout(3000).withSocketTimeout(10000).withMaxErrorRetry(2));
    String region = text("region") == null ? System.getenv("AWS_REGION") : text("region");
    region = region == null ? "us-east-1" : region;
    if (text("sts_endpoint") == null) {
      builder.setRegion(region);
    } else {
      builder.setEndpointConfiguration(new AwsClientBuilder.EndpointConfiguration(text("sts_endpoint"), region));
    }
    return (AWSSecurityTokenService) builder.build();
  }

  private String text(String name) {
    return (String) account.get(name);
  }

  private static String of(Map role, String name) {
    Object found = role.get(name);
    return "".equals(found) ? null : (String) found;
  }
}
"""


class LoginClassError(RuntimeError):
    """The class cannot be compiled, because the jars of `s3a` are not those of Hadoop 3.3."""


def set_up(session: SparkSession, options: Mapping[str, str]) -> None:
    """Compiles the class, and sends it to the driver's class loader and to all executors. Does nothing without
    accounts of S3. Raises LoginClassError."""
    found = [value for name, value in options.items() if name.endswith(f".{accounts.OPTION}")]
    if not found:
        return
    context: Any = session.sparkContext
    java: Any = context._jvm
    source = _SOURCE.replace("OPTION", accounts.OPTION, 1).replace("MARGIN", str(accounts.MARGIN))
    jar = Path(context._temp_dir, "storage-login.jar")
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(source)
        with zipfile.ZipFile(jar, "w") as file:
            classes = compiler.getBytecodes()
            for name in list(classes):
                file.writestr(f"{name.replace('.', '/')}.class", bytes(classes[name]))
        loader.addURL(java.java.io.File(str(jar)).toURI().toURL())
    except Py4JError as error:
        raise LoginClassError(
            "accounts of S3 need the jars of s3a for Hadoop 3.3: set GROUNDSKEEPER_PACKAGES=s3a"
        ) from error
    context._jsc.addJar(str(jar))
    java.java.lang.System.setProperty("groundskeeper.python", sys.executable)
    files = {account.ca_file for text in found for account in accounts.of_bucket(text) if account.ca_file}
    if files:
        _trust(java, files, Path(context._temp_dir, "trusted.p12"))


def _trust(java: Any, files: set[str], store: Path) -> None:
    """Lets the JVM trust these authorities in addition to the machine's: Java has one store for all connections."""
    ders = ssl.create_default_context().get_ca_certs(binary_form=True)
    found = [x509.load_der_x509_certificate(der) for der in ders]
    for file in sorted(files):
        found += x509.load_pem_x509_certificates(Path(file).read_bytes())
    entries = [pkcs12.PKCS12Certificate(each, str(number).encode()) for number, each in enumerate(found)]
    store.write_bytes(pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(_PASSWORD.encode())))
    for name, value in (("", str(store)), ("Password", _PASSWORD), ("Type", "PKCS12")):
        java.java.lang.System.setProperty(f"javax.net.ssl.trustStore{name}", value)


# The store has no secrets, but Java's format wants a password.
_PASSWORD = "changeit"  # noqa: S105
