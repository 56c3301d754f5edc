package dev.portico.testing;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What is to happen: by default to all requests for resources, and until it is removed. Each method
 * gives back another fault.
 */
public record Fault(String kind, Map<String, Object> values, Map<String, Object> match, Integer times) {
  private static Fault of(String kind, Map<String, Object> values) {
    return new Fault(kind, values, Map.of(), null);
  }

  /** Requests are handled later. */
  public static Fault latency(Duration by) {
    return of("latency", Map.of("milliseconds", by.toMillis()));
  }

  /** Requests are refused: 409 is a conflict, 410 expired, 429, 500, 503 and so on. */
  public static Fault status(int code) {
    return of("status", Map.of("code", code));
  }

  /** The connection breaks, and nothing was done. */
  public static Fault dropRequest() {
    return of("dropRequest", Map.of());
  }

  /** What is asked for is done, and the connection breaks in the place of the answer. */
  public static Fault dropAnswer() {
    return of("dropAnswer", Map.of());
  }

  /** Watches break off, open ones, too. */
  public static Fault cutWatch() {
    return of("cutWatch", Map.of());
  }

  /** Watches, open ones, too, end with an event that says 410. */
  public static Fault expireWatch() {
    return of("expireWatch", Map.of());
  }

  /** Gets and lists answer as of the moment in which this is set, and watches stand still. */
  public static Fault staleReads() {
    return of("staleReads", Map.of());
  }

  /** Sets a value by its name in docs/guides/testing-with-faults.md: reason, message, retryAfterSeconds, afterEvents, clean and so on. */
  public Fault with(String name, Object value) {
    return new Fault(kind, added(values, name, value), match, times);
  }

  /** To requests for this resource, by group (empty for core) and plural. */
  public Fault resource(String apiGroup, String plural) {
    return match("apiGroup", apiGroup).match("resource", plural);
  }

  /** To requests with these verbs. */
  public Fault verbs(String... verbs) {
    return match("verbs", List.of(verbs));
  }

  /** To requests of which this is so, by its name in docs/guides/testing-with-faults.md: namespace, name, subresource, user, userAgent. */
  public Fault match(String name, Object value) {
    return new Fault(kind, values, added(match, name, value), times);
  }

  /** So often. */
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
