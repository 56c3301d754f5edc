package dev.portico.testing;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A fault to set on the server. By default it affects every request for a resource, until it is removed. Each
 * method returns a new fault.
 */
public record Fault(String kind, Map<String, Object> values, Map<String, Object> match, Integer times) {
  private static Fault of(String kind, Map<String, Object> values) {
    return new Fault(kind, values, Map.of(), null);
  }

  /** Delays requests. */
  public static Fault latency(Duration by) {
    return of("latency", Map.of("milliseconds", by.toMillis()));
  }

  /** Refuses requests: 409 is a conflict, 410 expired, also 429, 500, 503 and others. */
  public static Fault status(int code) {
    return of("status", Map.of("code", code));
  }

  /** Closes the connection before the request is handled. */
  public static Fault dropRequest() {
    return of("dropRequest", Map.of());
  }

  /** Handles the request, then closes the connection instead of responding. */
  public static Fault dropAnswer() {
    return of("dropAnswer", Map.of());
  }

  /** Ends watches, including open ones. */
  public static Fault cutWatch() {
    return of("cutWatch", Map.of());
  }

  /** Ends watches, including open ones, with an ERROR event of 410. */
  public static Fault expireWatch() {
    return of("expireWatch", Map.of());
  }

  /** Serves gets and lists at the revision at which this is set, and pauses watches. */
  public static Fault staleReads() {
    return of("staleReads", Map.of());
  }

  /**
   * Sets a parameter of the fault, such as reason, message, retryAfterSeconds, afterEvents or clean
   * (docs/guides/testing-with-faults.md lists them).
   */
  public Fault with(String name, Object value) {
    return new Fault(kind, added(values, name, value), match, times);
  }

  /** Matches requests for this resource: API group (empty for the core group) and plural. */
  public Fault resource(String apiGroup, String plural) {
    return match("apiGroup", apiGroup).match("resource", plural);
  }

  /** Matches requests with these verbs. */
  public Fault verbs(String... verbs) {
    return match("verbs", List.of(verbs));
  }

  /** Matches requests by another property: namespace, name, subresource, user or userAgent. */
  public Fault match(String name, Object value) {
    return new Fault(kind, values, added(match, name, value), times);
  }

  /** Limits the number of requests that the fault affects. */
  public Fault times(int times) {
    return new Fault(kind, values, match, times);
  }

  Map<String, Object> rule() {
    Map<String, Object> rule = Map.of("match", match, "fault", Map.of(kind, values));
    return times == null ? rule : added(rule, "times", times);
  }

  private static Map<String, Object> added(Map<String, Object> map, String name, Object value) {
    var more = new HashMap<>(map);
    more.put(name, value);
    return Map.copyOf(more);
  }
}
