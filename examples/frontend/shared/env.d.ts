interface ImportMetaEnv {
  /** The API's address, where it is on another site. */
  readonly VITE_API?: string;
}
