/** Settings of a server. */
export interface Options {
  /** Program to run instead of PORTICO_BIN or the `portico` on the PATH. */
  program?: string;
  /** Additional flags of Portico. */
  args?: string[];
}

/** Starts a server and waits until it is ready. */
export function start(options?: Options): Promise<Server>;

/** A running server. It stops, and its data are removed, with stop() or when this process exits. */
export interface Server {
  /** `https://HOST:PORT` */
  readonly url: string;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Folder with internal-ca.crt, admin.crt and admin.key. */
  readonly certs: string;
  /** Sets a fault. Rejects with the server's message if the fault is invalid. */
  fault(fault: Fault, requests?: Requests): Promise<SetFault>;
  /** Removes all faults. */
  clearFaults(): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/** A fault that is set on the server. */
export interface SetFault {
  /** Returns the number of requests that the fault has affected. */
  hits(): Promise<number>;
  /** Removes the fault. Returns the number of requests that it has affected. */
  remove(): Promise<number>;
}

/** Requests that a fault affects. A field that is not set matches everything. */
export interface Requests {
  verbs?: ('get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection')[];
  /** Empty for the core group. */
  apiGroup?: string;
  resource?: string;
  /** Empty for the object itself only. */
  subresource?: string;
  namespace?: string;
  /** Create requests have none. */
  name?: string;
  user?: string;
  /** Prefix of the user agent. */
  userAgent?: string;
  /** Limit of affected requests; by default none. */
  times?: number;
}

/** Effect on the selected requests. */
export type Fault =
  | {/** Delays requests. */ latency: {milliseconds: number}}
  | {
      /** Refuses requests; a code or a reason is enough. */
      status: {code?: number; reason?: string; message?: string; retryAfterSeconds?: number};
    }
  | {/** Closes the connection before the request is handled. */ dropRequest: {}}
  | {/** Handles the request, then closes the connection instead of responding. */ dropAnswer: {}}
  | {
      /** Ends watches, including open ones; `clean` ends them as a timeout does. */
      cutWatch: {afterEvents?: number; afterMilliseconds?: number; clean?: boolean};
    }
  | {/** Ends watches with an ERROR event of 410. */ expireWatch: {afterEvents?: number; afterMilliseconds?: number}}
  | {/** Serves gets and lists at a revision, by default the current one, and pauses watches. */ staleReads: {resourceVersion?: string}};
