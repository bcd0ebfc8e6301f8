"""Delegation tokens of HDFS, by which tasks without a Kerberos ticket read and write with Arrow.

The name node ends a token unless its renewer renews it in time (`dfs.namenode.delegation.token.renew-interval`, a day
by default), and in any case after `dfs.namenode.delegation.token.max-lifetime`, a week by default. YARN's resource
manager renews only the tokens that Spark has sent with its application, so this worker renews its own.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from jobs.hudi import janino
from jobs.hudi.jvm import first_line, translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

# A token is renewed after this part of the interval, as by Spark (`spark.security.credentials.renewalRatio`).
_RENEWED_AFTER = 0.75
_LONGEST_PAUSE_SECONDS = 30.0
# A name node issues and renews tokens only by Kerberos (`FSNamesystem.isAllowedDelegationTokenOp`). On YARN, Spark also
# gives the login of the driver tokens, and Hadoop prefers these to the ticket, so the login is used without them.
_SOURCE = """
package groundskeeper;

import java.security.AccessController;
import java.security.PrivilegedExceptionAction;
import java.util.Iterator;
import java.util.Set;
import javax.security.auth.Subject;
import javax.security.auth.kerberos.KerberosPrincipal;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

public class OwnLogin {
  public OwnLogin() {}

  public Token issued(final Path path, final Configuration conf) throws Exception {
    final UserGroupInformation user = withoutTokens();
    return (Token) user.doAs(new PrivilegedExceptionAction() {
      public Object run() throws Exception {
        FileSystem files = FileSystem.newInstance(path.toUri(), conf);
        try {
          return files.getDelegationToken(user.getUserName());
        } finally {
          files.close();
        }
      }
    });
  }

  public long renewed(final Token token, final Configuration conf) throws Exception {
    return ((Long) withoutTokens().doAs(new PrivilegedExceptionAction() {
      public Object run() throws Exception {
        return new Long(token.renew(conf));
      }
    })).longValue();
  }

  private static UserGroupInformation withoutTokens() throws Exception {
    Subject login = (Subject) UserGroupInformation.getLoginUser().doAs(new PrivilegedExceptionAction() {
      public Object run() {
        return Subject.getSubject(AccessController.getContext());
      }
    });
    Subject own = new Subject();
    own.getPrincipals().addAll(login.getPrincipals(KerberosPrincipal.class));
    Set all = login.getPrivateCredentials();
    synchronized (all) {
      for (Iterator each = all.iterator(); each.hasNext();) {
        Object found = each.next();
        if (!(found instanceof Credentials)) {
          own.getPrivateCredentials().add(found);
        }
      }
    }
    return UserGroupInformation.getUGIFromSubject(own);
  }
}
"""


@dataclass(frozen=True)
class _Token:
    """`text` is the token in the form of URLs. The name node's clock gave the times, in milliseconds."""

    text: str = field(repr=False)
    issued_at: int
    ends_at: int
    received: float = field(default_factory=time.monotonic)

    def is_half_over(self) -> bool:
        return (time.monotonic() - self.received) * 2000 > self.ends_at - self.issued_at


_tokens: weakref.WeakKeyDictionary[HudiTable, _Token] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def token_of(table: HudiTable) -> str:
    """Returns a token for the table's cluster, which is renewed while the table is open and the token's lifetime lasts.
    Raises HudiError."""
    with _guard:
        found = _tokens.get(table)
    if found is None or found.is_half_over():
        found = _new(table)
        with _guard:
            _tokens[table] = found
    return found.text


def _new(table: HudiTable) -> _Token:
    conf = table.jvm.hadoop_conf
    with translated("getting a delegation token of HDFS"):
        path = table.jvm.java.org.apache.hadoop.fs.Path(table.base_path)
        login = janino.instance(
            table.jvm, _SOURCE, "groundskeeper.OwnLogin", beside=table.jvm.java.org.apache.hadoop.fs.Path
        )
        token = login.issued(path, conf)
        identifier = token.decodeIdentifier()
        found = _Token(str(token.encodeToUrlString()), identifier.getIssueDate(), identifier.getMaxDate())
    is_closed = threading.Event()
    weakref.finalize(table, is_closed.set)
    renew = partial(login.renewed, token, conf)
    threading.Thread(target=_keep, args=(found, renew, is_closed), name="delegation token", daemon=True).start()
    return found


def _keep(token: _Token, renew: Callable[[], int], is_closed: threading.Event) -> None:
    """Renews the token until it ends. The thread has no reference to the table, whose end it waits for."""
    # The first renewal tells the interval.
    pause, interval, renewed = 0.0, 0.0, time.monotonic()
    while not is_closed.wait(pause):
        try:
            ends_at = renew()
        except (Py4JError, OSError) as error:
            why = first_line(error) if isinstance(error, Py4JError) else error
            if interval and time.monotonic() > renewed + interval:
                logger.warning("a delegation token of HDFS has ended, because it could not be renewed: %s", why)
                return
            logger.warning("a delegation token of HDFS is not renewed yet: %s", why)
            pause = min(interval / 10, _LONGEST_PAUSE_SECONDS) or _LONGEST_PAUSE_SECONDS
            continue
        if ends_at >= token.ends_at:
            return
        interval, renewed = interval or (ends_at - token.issued_at) / 1000, time.monotonic()
        pause = interval * _RENEWED_AFTER
