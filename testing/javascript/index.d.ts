/** How a server is started. */
export interface Options {
  /** The program, rather than PORTICO_BIN or the `portico` on the PATH. */
  program?: string;
  /** Further flags of Portico. */
  args?: string[];
}

/** Starts a server, and waits until it serves. */
export function start(options?: Options): Promise<Server>;

/** A running server. It ends, and its data go, when it is stopped or this process ends. */
export interface Server {
  /** `https://HOST:PORT` */
  readonly url: string;
  /** The path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The folder of internal-ca.crt, admin.crt and admin.key. */
  readonly certs: string;
  /** Lets a fault happen from now on. Rejects, with the server's words, what makes no sense. */
  fault(fault: Fault, requests?: Requests): Promise<SetFault>;
  /** Removes all faults. */
  clearFaults(): Promise<void>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

/** A fault that is set. */
export interface SetFault {
  /** To how many requests it has happened. */
  hits(): Promise<number>;
  /** Removes it; gives back to how many requests it has happened. */
  remove(): Promise<number>;
}

/** Which requests; a field that is not set matches anything. */
export interface Requests {
  verbs?: ('get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection')[];
  /** Empty for core. */
  apiGroup?: string;
  resource?: string;
  /** Empty for the object itself alone. */
  subresource?: string;
  namespace?: string;
  /** Requests to create have none. */
  name?: string;
  user?: string;
  /** How it begins. */
  userAgent?: string;
  /** How often; by default until the fault is removed. */
  times?: number;
}

/** What happens. */
export type Fault =
  | {/** Requests are handled later. */ latency: {milliseconds: number}}
  | {
      /** Requests are refused; a code or a reason is enough. */
      status: {code?: number; reason?: string; message?: string; retryAfterSeconds?: number};
    }
  | {/** The connection breaks, and nothing was done. */ dropRequest: {}}
  | {/** It is done, and the connection breaks in the place of the answer. */ dropAnswer: {}}
  | {
      /** Watches break off, open ones, too; clean ones end as at their timeout. */
      cutWatch: {afterEvents?: number; afterMilliseconds?: number; clean?: boolean};
    }
  | {/** Watches end with an event that says 410. */ expireWatch: {afterEvents?: number; afterMilliseconds?: number}}
  | {/** Gets and lists answer as of a revision, by default that of now, and watches stand still. */ staleReads: {resourceVersion?: string}};
