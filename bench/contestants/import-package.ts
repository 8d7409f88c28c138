/** Imports a package of bench/package.json. The compiler does not see its types. */
export async function importPackage<Module>(specifier: string): Promise<Module> {
  return (await import(specifier)) as Module;
}
